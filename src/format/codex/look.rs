//! What a record is, from its first bytes: most records are left here, so this never looks further than it must.

use std::borrow::Cow;

use super::super::json::{Field, Fields, Scan};

/// How records begin.
pub(super) const STARTS: &[&[u8]] = &[b"{\"timestamp\":\"", b"{\"type\":\"message\""];

/// What a record is.
pub(super) enum Look<'a> {
    /// The settings of a turn.
    Context,
    /// A summary that takes the place of what came before.
    Compacted,
    /// An event of this type.
    Event(Cow<'a, str>),
    /// A completed item of this type.
    Completed(Cow<'a, str>),
    /// A message in this role.
    Message(Cow<'a, str>),
    /// A response item of this type, and the members behind it.
    Item(Cow<'a, str>, Fields<'a>),
    /// The members come in another order than Codex writes them: only the whole record tells.
    Odd,
    /// Nothing that matters.
    Other,
}

/// Looks at the head of a record.
pub(super) fn look(head: &[u8]) -> Scan<Look<'_>> {
    let mut fields = Fields::open(head, 0)?;
    let mut outer = None;
    while let Some(field) = fields.pull()? {
        if field.is("type") {
            let kind = kind(&field)?;
            match kind.as_ref() {
                "event_msg" | "response_item" => outer = Some(kind),
                "turn_context" => return Ok(Look::Context),
                "compacted" => return Ok(Look::Compacted),
                "session_meta" | "world_state" => return Ok(Look::Other),
                // The bare items of 2025 go on in this very object.
                _ => return item(kind, fields),
            }
        } else if field.is("payload") {
            return match outer.as_deref() {
                Some("event_msg") => event(field.fields()?),
                Some(_) => response(field.fields()?),
                None => Ok(Look::Odd),
            };
        }
    }
    Ok(Look::Other)
}

fn kind<'a>(field: &Field<'a>) -> Scan<Cow<'a, str>> {
    Ok(field.value()?.text().unwrap_or_default())
}

fn event(mut fields: Fields<'_>) -> Scan<Look<'_>> {
    let mut completed = false;
    while let Some(field) = fields.pull()? {
        if field.is("type") {
            let kind = kind(&field)?;
            if kind != "item_completed" {
                return Ok(Look::Event(kind));
            }
            completed = true;
        } else if completed && field.is("item") {
            return Ok(named(field.fields()?, "type")?.map_or(Look::Other, Look::Completed));
        }
    }
    Ok(Look::Other)
}

fn response(mut fields: Fields<'_>) -> Scan<Look<'_>> {
    while let Some(field) = fields.pull()? {
        if field.is("type") {
            return item(kind(&field)?, fields);
        }
    }
    Ok(Look::Other)
}

fn item<'a>(kind: Cow<'a, str>, fields: Fields<'a>) -> Scan<Look<'a>> {
    if kind == "message" {
        return Ok(named(fields, "role")?.map_or(Look::Other, Look::Message));
    }
    Ok(Look::Item(kind, fields))
}

fn named<'a>(mut fields: Fields<'a>, name: &str) -> Scan<Option<Cow<'a, str>>> {
    while let Some(field) = fields.pull()? {
        if field.is(name) {
            return Ok(Some(kind(&field)?));
        }
    }
    Ok(None)
}
