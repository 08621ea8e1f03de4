//! Finds the turns in one pass: each record belongs to the turn of the one it hangs below, so of most records only the
//! head is read and one number is kept. Also says where the file may end: at a prompt's record, when what comes before
//! is the conversation up to it and nothing else.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::Owners;
use super::super::{Trouble, time};
use super::{NAME, stem, text};
use crate::model::cut::FileChange;
use crate::model::session::{FileNo, Oddity, Session, Span, Turn, TurnKind, Warnings};

/// How records of this format begin.
pub(super) const STARTS: &[&[u8]] = &[b"{\"uuid\":\""];

/// A prompt on whatever branch.
#[derive(Debug)]
struct Candidate {
    id: String,
    line: u64,
    prompt: String,
    at: Option<DateTime<Utc>>,
    /// The turn before it on its branch.
    before: Option<usize>,
}

#[derive(Debug, Default)]
struct Pass {
    candidates: Vec<Candidate>,
    /// Hash of a record's id → the turn that it belongs to.
    owner: HashMap<u64, Option<usize>>,
    /// The turn of the newest record.
    leaf: Option<usize>,
    /// The turns that the newest summary stands for: this one and those before it.
    compacted: Option<usize>,
    root: Option<PathBuf>,
    owners: Owners,
    /// Offsets of records whose parent is nowhere.
    lost: Vec<u64>,
    begun: bool,
}

pub(super) fn read(path: &Path) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let mut pass = Pass::default();
    let whole = lines::whole(FileNo(0));
    let end = lines::scan(path, whole, &mut pass, &mut warnings).map_err(Trouble::io(path))?;
    for at in &pass.lost {
        warnings.add(Oddity::LostParent, FileNo(0), *at);
    }
    pass.owners.tell(&mut warnings);
    let active = pass.active();
    let abandoned = pass.candidates.len() - active.len();
    let mut turns = pass.turns(&active, end);
    super::super::record::apart(&mut turns);
    Ok(Session {
        agent: NAME,
        id: stem(path),
        files: vec![path.to_path_buf()],
        root: pass.root.take(),
        turns,
        abandoned: u32::try_from(abandoned).unwrap_or(u32::MAX),
        len: end,
        warnings,
    })
}

impl Pass {
    /// The turns between the root and the leaf, oldest first. A turn's forerunner is always an earlier one.
    fn active(&self) -> Vec<usize> {
        let mut out = Vec::new();
        let mut next = self.leaf;
        while let Some(index) = next {
            out.push(index);
            let before = self.candidates.get(index).and_then(|c| c.before);
            next = before.filter(|b| *b < index);
        }
        out.reverse();
        out
    }

    fn turns(&self, active: &[usize], end: u64) -> Vec<Turn> {
        let summarised = self.compacted.filter(|c| active.contains(c));
        let found = active
            .iter()
            .filter_map(|i| Some((*i, self.candidates.get(*i)?)));
        found
            .enumerate()
            .map(|(no, (index, c))| Turn {
                no: u32::try_from(no).unwrap_or(u32::MAX),
                key: c.id.clone(),
                prompt: c.prompt.clone(),
                at: c.at,
                kind: TurnKind::Prompt,
                span: Span {
                    file: FileNo(0),
                    start: c.line,
                    end: self.candidates.get(index + 1).map_or(end, |n| n.line),
                },
                line: c.line,
                interrupted: false,
                compacted: summarised.is_some_and(|s| index <= s),
            })
            .collect()
    }

    /// The turn of the record that this one hangs below.
    fn parent(&mut self, parent: Option<&str>, at: u64) -> Option<usize> {
        let parent = parent?;
        if let Some(owner) = self.owner.get(&key(parent)) {
            return *owner;
        }
        // The head of the file may have been cut away: then the first record's parent is nobody's loss.
        if self.begun {
            self.lost.push(at);
        }
        self.leaf
    }
}

impl Visit for Pass {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        let (mut id, mut parent, mut kind) = (None, None, None);
        while let Some(field) = fields.pull()? {
            let own = |v: Value<'_>| v.text().map(std::borrow::Cow::into_owned);
            if field.is("uuid") {
                id = own(field.value()?);
            } else if field.is("parentUuid") {
                parent = own(field.value()?).map(Some).or(Some(None));
            } else if field.is("type") {
                kind = own(field.value()?);
            }
            if let (Some(id), Some(parent), Some(kind)) = (&id, &parent, &kind) {
                if kind != "assistant" && kind != "tool_result" {
                    return Ok(Wants::Whole);
                }
                let turn = self.parent(parent.as_deref(), 0);
                self.owner.insert(key(id), turn);
                self.leaf = turn;
                self.begun = true;
                return Ok(Wants::No);
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let value = Value::head(record);
        let Some(id) = text(&value, "uuid") else {
            return;
        };
        let parent = text(&value, "parentUuid");
        let mut turn = self.parent(parent.as_deref(), at);
        if self.root.is_none() {
            self.root = text(&value, "cwd").map(PathBuf::from);
        }
        if let Some(prompt) = prompt(&value) {
            self.owners.saw(text(&value, "sessionId"), at);
            self.candidates.push(Candidate {
                id: id.clone(),
                line: at,
                prompt,
                at: text(&value, "timestamp").and_then(|t| time(&t)),
                before: turn,
            });
            turn = Some(self.candidates.len() - 1);
        }
        if text(&value, "subtype").as_deref() == Some("chat_compression") {
            self.compacted = turn;
        }
        self.owner.insert(key(&id), turn);
        self.leaf = turn;
        self.begun = true;
    }
}

/// Ids are kept as numbers, so that a long session costs a few bytes a record.
fn key(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// The prompt of a record; `None` for notices, reminders and results under the same type.
pub(super) fn prompt(record: &Value<'_>) -> Option<String> {
    let by_a_person = text(record, "provenance").is_none_or(|p| p == "real_user");
    let user = record.get("type").is_some_and(|t| t.is_str("user"));
    if !user || !by_a_person || record.get("subtype").is_some() {
        return None;
    }
    let mut out = String::new();
    let mut some = false;
    for part in record.get("message")?.get("parts")?.items() {
        if part.get("functionResponse").is_some() {
            return None;
        }
        some |= part.get("text").is_some() || part.get("inlineData").is_some();
        out.push_str(&text(&part, "text").unwrap_or_default());
    }
    some.then_some(out)
}

pub(super) fn cut(session: &Session, turn: u32) -> Result<Vec<FileChange>, Trouble> {
    let path = session.path();
    let refuse = |why: &str| {
        Err(Trouble::Refused {
            why: why.to_owned(),
        })
    };
    let Some(target) = session.turn(turn) else {
        return refuse("there is no such turn");
    };
    let keep = target.span.start;
    if let Some(before) = keep.checked_sub(1) {
        let mut last = [0];
        File::open(path)
            .and_then(|f| f.read_exact_at(&mut last, before))
            .map_err(Trouble::io(path))?;
        if last != [b'\n'] {
            return refuse("the turn begins in the middle of a line, behind another record");
        }
    }
    let mut kept = Pass::default();
    let span = Span {
        end: keep,
        ..lines::whole(FileNo(0))
    };
    lines::scan(path, span, &mut kept, &mut Warnings::default()).map_err(Trouble::io(path))?;
    let left = kept.active();
    let left = left.iter().filter_map(|i| kept.candidates.get(*i));
    let wanted = session.turns.iter().take(turn as usize);
    if !left.map(|c| &c.id).eq(wanted.map(|t| &t.key)) {
        return refuse(
            "another branch of the conversation stands before the turn, and would be taken up again",
        );
    }
    Ok(vec![FileChange::Truncate {
        path: path.to_path_buf(),
        keep,
        len: session.len,
    }])
}
