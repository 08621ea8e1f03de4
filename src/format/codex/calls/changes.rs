//! What a patch did to each file, from the event that tells it or from its text.
//!
//! ```text
//! {"/w/a":{"type":"add","content":"…"},
//!  "/w/b":{"type":"delete","content":"…"},
//!  "/w/c":{"type":"update","unified_diff":"@@ -1 +1 @@\n…","move_path":null}}
//! ```
//!
//! An add may have taken the place of a file; the record does not say, so what was there before is not known.

use std::collections::HashSet;
use std::path::Path;

use super::super::super::json::Value;
use super::super::super::patch::{Section, SectionKind};
use super::super::text;
use crate::model::edit::{Change, Content, Fidelity, Payload, Reason, RecordedPath, State};
use crate::model::session::{FileNo, Span};

/// One file that a patch changed.
pub(super) struct Told {
    pub(super) path: RecordedPath,
    pub(super) before: State,
    pub(super) change: Change,
    pub(super) after: State,
}

impl Told {
    fn add(path: RecordedPath, after: State) -> Self {
        Self {
            path,
            before: State::Unknown(Reason::MaybeOverwritten),
            change: Change::Opaque,
            after,
        }
    }

    fn delete(path: RecordedPath, before: State) -> Self {
        Self {
            path,
            before,
            change: Change::Opaque,
            after: State::Absent,
        }
    }

    fn update(path: RecordedPath, before: Reason, change: Change) -> Self {
        Self {
            path,
            before: State::Unknown(before),
            change,
            after: State::Unknown(Reason::NotRecorded),
        }
    }

    /// A move: the new path first, which may have been a file before. Undone from the last edit to the first, the old
    /// path then takes its content from the new one while that still holds what the call left.
    fn moved(from: RecordedPath, to: RecordedPath, before: Reason, change: Change) -> [Self; 2] {
        let arrives = Change::MovedFrom(from.clone(), Box::new(change.clone()));
        let leaves = Self {
            path: from,
            before: State::Unknown(before),
            change: Change::MovedTo(to.clone(), Box::new(change)),
            after: State::Absent,
        };
        [Self::update(to, Reason::MaybeOverwritten, arrives), leaves]
    }
}

/// Whether a path is named more than once; the order of the changes is then not known.
pub(super) fn name_twice(all: &[Told]) -> bool {
    let mut seen = HashSet::new();
    !all.iter().all(|t| seen.insert(&t.path))
}

/// The changes of an event whose record begins at `offset`.
pub(super) fn of_event(changes: &Value<'_>, file: FileNo, offset: u64) -> Vec<Told> {
    let place = Place { file, offset };
    let mut all = Vec::new();
    for (path, change) in changes.entries() {
        let path = RecordedPath::new(path.as_ref());
        let kind = text(&change, "type").unwrap_or_default();
        match kind.as_str() {
            "add" => all.push(Told::add(path, place.held(&change))),
            "delete" => all.push(Told::delete(path, place.held(&change))),
            "update" => all.extend(place.update(path, &change)),
            // Something newer: the file changed, and how is not known.
            _ => all.push(Told::update(path, Reason::NotReversible, Change::Opaque)),
        }
    }
    all
}

/// Where a record lies.
struct Place {
    file: FileNo,
    offset: u64,
}

impl Place {
    fn token(&self, value: &Value<'_>) -> Content {
        Content {
            payload: Payload::Token(Span {
                file: self.file,
                start: self.offset + value.start as u64,
                end: self.offset + value.end as u64,
            }),
            fidelity: Fidelity::Exact,
            sha256: None,
        }
    }

    fn held(&self, change: &Value<'_>) -> State {
        match change.get("content") {
            // Bytes that were no text became U+FFFD when they were recorded.
            Some(c) if c.is_string() && has_replacement(c.raw()) => {
                State::Unknown(Reason::TextOnly)
            }
            Some(c) if c.is_string() => State::Held(self.token(&c)),
            _ => State::Unknown(Reason::NotRecorded),
        }
    }

    fn update(&self, path: RecordedPath, change: &Value<'_>) -> Vec<Told> {
        let (before, hunks) = match change.get("unified_diff") {
            Some(d) if d.is_string() && !has_replacement(d.raw()) => {
                (Reason::NotRecorded, Change::Hunks(self.token(&d)))
            }
            _ => (Reason::NotReversible, Change::Opaque),
        };
        match text(change, "move_path") {
            Some(to) => Told::moved(path, RecordedPath::new(to), before, hunks).into(),
            None => vec![Told::update(path, before, hunks)],
        }
    }
}

fn has_replacement(token: &[u8]) -> bool {
    let find = |needle: &[u8]| memchr::memmem::find(token, needle).is_some();
    find("\u{fffd}".as_bytes()) || find(b"\\ufffd") || find(b"\\uFFFD")
}

/// The changes of one section of a patch text. Its hunks have no line numbers, so they cannot be undone for certain.
pub(super) fn of_section(section: Section, base: Option<&Path>) -> Vec<Told> {
    let recorded = |path| RecordedPath {
        path,
        base: base.map(Path::to_path_buf),
    };
    let path = recorded(section.path);
    match section.kind {
        SectionKind::Add(content) => {
            let after = State::Held(Content {
                payload: Payload::Bytes(content),
                fidelity: Fidelity::Exact,
                sha256: None,
            });
            vec![Told::add(path, after)]
        }
        SectionKind::Delete => vec![Told::delete(path, State::Unknown(Reason::NotRecorded))],
        SectionKind::Update(None) => {
            vec![Told::update(path, Reason::NotReversible, Change::Opaque)]
        }
        SectionKind::Update(Some(to)) => {
            Told::moved(path, recorded(to), Reason::NotReversible, Change::Opaque).into()
        }
    }
}
