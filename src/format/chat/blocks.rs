//! The two ways in which messages hold calls: blocks of content (`tool_use`, `tool_result`), and lists beside the content
//! (`tool_calls`, role `tool`).

use std::borrow::Cow;

use super::super::json::Value;
use super::super::record::text;
use super::{Action, Input};

/// The calls and results in blocks of content.
pub(in super::super) fn in_blocks(content: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
    for block in content.items() {
        match text(&block, "type").as_deref() {
            Some("tool_use") => {
                let Some(name) = text(&block, "name") else {
                    continue;
                };
                if let Some(input) = block.get("input").and_then(Input::of) {
                    take(Action::Call {
                        id: text(&block, "id"),
                        name: Cow::Owned(name),
                        input,
                    });
                }
            }
            Some("tool_result") => {
                if let Some(id) = text(&block, "tool_use_id") {
                    let failed = block.get("is_error").is_some_and(|e| e.is_true());
                    take(Action::Result {
                        id,
                        done: Some(!failed),
                    });
                }
            }
            _ => {}
        }
    }
}

/// Whether content holds the result of a call.
pub(in super::super) fn has_result(content: &Value<'_>) -> bool {
    content
        .items()
        .any(|b| b.get("type").is_some_and(|t| t.is_str("tool_result")))
}

/// The calls in `tool_calls` of a message.
pub(in super::super) fn in_list(message: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
    for call in message.get("tool_calls").iter().flat_map(Value::items) {
        let of = call.get("function").unwrap_or(call);
        let Some(name) = text(&of, "name") else {
            continue;
        };
        if let Some(input) = of.get("arguments").and_then(Input::of) {
            take(Action::Call {
                id: text(&call, "id"),
                name: Cow::Owned(name),
                input,
            });
        }
    }
}
