//! The event that tells what a patch did.
//!
//! ```text
//! {"type":"patch_apply_end","call_id":"c1","success":true,"changes":{…}}
//! {"type":"item_completed","item":{"type":"FileChange","id":"c1","changes":{…},"status":"completed"},
//!  "started_at_ms":1796092747574,"completed_at_ms":1796092747574}
//! ```

use chrono::{DateTime, TimeDelta, Utc};

use super::super::super::json::Value;
use super::super::super::time;
use super::super::text;

/// When something began and ended.
pub(super) type During = (DateTime<Utc>, DateTime<Utc>);

/// How a patch ended.
pub(super) enum Ended {
    Applied,
    Failed,
    Declined,
}

/// An event that tells what a patch did.
pub(super) struct Event<'a> {
    pub(super) id: Option<String>,
    pub(super) ended: Ended,
    pub(super) changes: Value<'a>,
    pub(super) offset: u64,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) during: Option<During>,
}

impl<'a> Event<'a> {
    /// Takes the event, if it is one.
    pub(super) fn of(payload: &Value<'a>, record: &Value<'a>, offset: u64) -> Option<Self> {
        let (body, id) = match text(payload, "type")?.as_str() {
            "patch_apply_end" => (*payload, text(payload, "call_id")),
            "item_completed" => {
                let item = payload.get("item")?;
                if !item.get("type")?.is_str("FileChange") {
                    return None;
                }
                (item, text(&item, "id"))
            }
            _ => return None,
        };
        let success = body.get("success").map(|s| s.is_true());
        let ended = match (text(&body, "status").as_deref(), success) {
            (Some("declined"), _) => Ended::Declined,
            (Some("completed"), None | Some(true)) | (None, Some(true)) => Ended::Applied,
            _ => Ended::Failed,
        };
        let ms = |name| {
            let n = payload.get(name)?.i64()?;
            DateTime::from_timestamp_millis(n)
        };
        // The times are cut to whole milliseconds, so the end may lie up to one later.
        let end =
            ms("completed_at_ms").and_then(|t| t.checked_add_signed(TimeDelta::milliseconds(1)));
        Some(Self {
            id,
            ended,
            changes: body.get("changes")?,
            offset,
            at: text(record, "timestamp").and_then(|t| time(&t)),
            during: ms("started_at_ms").zip(end),
        })
    }
}
