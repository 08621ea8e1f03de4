//! A fork of a Gemini session: the log up to the turn's record under a new name, with the new id in its headers. All that
//! comes before a record folds to what the conversation was at that moment, so no line has to be left out. A document
//! of an older version becomes a log: its header, then its messages, one a line. Real clients resume it
//! (`formats/measured.md`).

use std::path::Path;

use super::super::json::Value;
use super::super::splice::{Swaps, pieces, token};
use super::super::{Head, Trouble};
use super::{fold, is_document, place, text};
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

pub(super) fn fork(session: &Session, turn: u32, new: &NewSession) -> Result<Fork, Trouble> {
    let refused = |why: String| Trouble::Refused { why };
    let target = session
        .turn(turn)
        .ok_or_else(|| refused(format!("there is no turn {turn}")))?;
    let no = usize::from(target.span.file.0);
    let path = session
        .files
        .get(no)
        .ok_or_else(|| refused("the turn's file is not known".to_owned()))?;
    let id = new.v4();
    let head = Head::read(path).map_err(Trouble::io(path))?;
    let body = if is_document(head.bytes()) {
        document(path, &target.key, &id)?
    } else {
        log(path, target.span.start, &id)?
    };
    let short = id.get(..8).unwrap_or_default();
    let time = new.at.format("%Y-%m-%dT%H-%M");
    let own = path.with_file_name(format!("session-{time}-{short}.jsonl"));
    let mut files = sub_agents(session, target.at, &own, &id);
    files.push(NewFile { path: own, body });
    Ok(Fork {
        id,
        files,
        ..Fork::default()
    })
}

fn log(path: &Path, end: u64, id: &str) -> Result<Vec<Piece>, Trouble> {
    let new = token(id);
    let swap = |of: &Value<'_>, swaps: &mut Swaps| {
        if let Some(old) = of.get("sessionId").filter(Value::is_string) {
            swaps.put(&old, &new);
        }
    };
    pieces(path, (0, end), &mut |record, swaps| {
        swap(record, swaps);
        if let Some(set) = record.get("$set") {
            swap(&set, swaps);
        }
    })
}

/// The document as a log. White space between tokens goes, since a record must stand on one line; tokens stay as they
/// are.
fn document(path: &Path, until: &str, id: &str) -> Result<Vec<Piece>, Trouble> {
    let bytes = fold::document(path)?;
    let lead = bytes.iter().take_while(|b| **b != b'{').count();
    let whole = bytes.get(lead..).and_then(Value::of);
    let Some(whole) = whole else {
        return Err(Trouble::Broken {
            what: format!("`{}` is no whole JSON document", path.display()),
        });
    };
    let mut out = Vec::new();
    let told = |name| text(&whole, name);
    let header = serde_json::json!({
        "sessionId": id, "projectHash": told("projectHash"), "startTime": told("startTime"),
        "lastUpdated": told("lastUpdated"), "kind": "main",
    });
    out.extend_from_slice(header.to_string().as_bytes());
    out.push(b'\n');
    for message in whole.get("messages").iter().flat_map(Value::items) {
        if text(&message, "id").as_deref() == Some(until) {
            break;
        }
        compact(message.raw(), &mut out);
        out.push(b'\n');
    }
    Ok(vec![Piece::text(out)])
}

fn compact(token: &[u8], out: &mut Vec<u8>) {
    let (mut inside, mut escaped) = (false, false);
    for &b in token {
        if inside {
            out.push(b);
            inside = escaped || b != b'"';
            escaped = !escaped && b == b'\\';
        } else if !b.is_ascii_whitespace() {
            out.push(b);
            inside = b == b'"';
        }
    }
}

/// The transcripts of sub-agents that began before the turn, under the new session's id.
fn sub_agents(
    session: &Session,
    until: Option<chrono::DateTime<chrono::Utc>>,
    own: &Path,
    id: &str,
) -> Vec<NewFile> {
    let began = |path: &Path| Head::read(path).ok().and_then(|h| place::card(&h).at);
    place::sub_agents(session.path(), &session.id)
        .into_iter()
        .filter(|p| began(p).zip(until).is_none_or(|(b, u)| b < u))
        .filter_map(|p| {
            Some(NewFile {
                path: own.with_file_name(id).join(p.file_name()?),
                body: vec![Piece::Whole(p.as_path().into())],
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_between_tokens_and_stays_in_strings() {
        let mut out = Vec::new();
        compact(
            b"{\n  \"a b\" : [ 1.0,\t\"x \\\" y\\\\\" ],\n \"c\": null }",
            &mut out,
        );
        assert_eq!(out, b"{\"a b\":[1.0,\"x \\\" y\\\\\"],\"c\":null}");
    }
}
