//! One pass over a Gemini log that folds it as the client does, and keeps of each message only a number: which prompts
//! there are, where each begins, and which of them the conversation still holds.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::super::json::{Field, Fields, Scan, Stop, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::{Trouble, time};
use super::prompt::{self, Prompt};
use super::text;
use crate::model::session::{FileNo, Oddity, Span, Warnings};

/// How records of this format begin.
pub(super) const STARTS: &[&[u8]] = &[b"{\"id\":\"", b"{\"$set\":", b"{\"$rewindTo\":"];

/// A prompt, whether the conversation still holds it or not.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub id: String,
    /// The id as a number.
    pub key: u64,
    /// Offset of the record with the prompt: the turn begins there (`formats/measured.md`).
    pub line: u64,
    pub prompt: String,
    pub at: Option<DateTime<Utc>>,
    /// The client dropped it and everything behind it (`$rewindTo`).
    pub rewound: bool,
    /// The client took it out of the list of messages because the person stopped it.
    pub interrupted: bool,
    /// The run of the client that wrote it.
    run: u32,
    sure: bool,
}

/// What one file tells.
#[derive(Debug, Default)]
pub(super) struct Fold {
    pub id: Option<String>,
    pub hash: Option<String>,
    /// `lastUpdated` as it stands; the client resumes the file with the newest one.
    pub updated: Option<String>,
    pub candidates: Vec<Candidate>,
    /// A workspace folder that the client told the model of.
    pub context: Option<String>,
    /// Offset behind the last byte read.
    pub end: u64,
    /// The messages in their order, by the hash of their id.
    messages: Vec<u64>,
    /// Every id that is or was in the list → the number of its candidate.
    known: HashMap<u64, Option<usize>>,
    run: u32,
}

impl Fold {
    /// Folds a file.
    pub(super) fn of_file(
        path: &Path,
        file: FileNo,
        warnings: &mut Warnings,
    ) -> Result<Self, Trouble> {
        let head = super::super::Head::read(path).map_err(Trouble::io(path))?;
        if super::is_document(head.bytes()) {
            return Self::of_document(path, file, warnings);
        }
        Self::of_span(path, lines::whole(file), warnings)
    }

    /// Folds a part of a log.
    pub(super) fn of_span(
        path: &Path,
        span: Span,
        warnings: &mut Warnings,
    ) -> Result<Self, Trouble> {
        let mut fold = Self::default();
        fold.end = lines::scan(path, span, &mut fold, warnings).map_err(Trouble::io(path))?;
        fold.candidates_are_sure();
        Ok(fold)
    }

    fn of_document(path: &Path, file: FileNo, warnings: &mut Warnings) -> Result<Self, Trouble> {
        let bytes = document(path)?;
        let mut fold = Self {
            end: bytes.len() as u64,
            ..Self::default()
        };
        let (lead, value) = whole(&bytes);
        match value {
            Some(value) => fold.header(&value, lead as u64),
            None => warnings.add(Oddity::TornTail, file, lead as u64),
        }
        fold.candidates_are_sure();
        Ok(fold)
    }

    /// Whether the client would resume the file: one without a prompt is no session to it.
    pub(super) fn resumable(&self) -> bool {
        let held = self.held();
        self.candidates.iter().any(|c| held.contains(&c.key))
    }

    /// The keys of the messages that the conversation holds.
    pub(super) fn held(&self) -> HashSet<u64> {
        self.messages.iter().copied().collect()
    }

    /// Prompts that look like commands and were never answered are no turns.
    fn candidates_are_sure(&mut self) {
        self.candidates.retain(|c| c.sure);
    }

    /// Adds a message to the list; one that is in it already keeps its place (an update).
    /// Whether its id was never seen before.
    fn add(&mut self, id: &str, kind: &str) -> bool {
        let key = key(id);
        let new = self.new_key(key);
        // A prompt that looks like a command is one as soon as the model answers it.
        if new
            && kind == "gemini"
            && let Some(last) = self.candidates.last_mut()
        {
            last.sure = true;
        }
        // What is said again was nearly always said just before, so the search from the end is short.
        if new || !self.messages.iter().rev().any(|m| *m == key) {
            self.messages.push(key);
        }
        new
    }

    /// Notes an id; whether it was never seen before.
    fn new_key(&mut self, key: u64) -> bool {
        let before = self.known.len();
        self.known.entry(key).or_insert(None);
        self.known.len() > before
    }

    /// Takes a message record that begins at `at`.
    fn message(&mut self, message: &Value<'_>, at: u64) {
        let Some(id) = text(message, "id") else {
            return;
        };
        let kind = text(message, "type").unwrap_or_default();
        // What is left of a list whose line is torn may look like a message said again: it is no new prompt.
        if !self.add(&id, &kind) || kind != "user" {
            return;
        }
        let key = key(&id);
        let Some(prompt) = prompt::of(message) else {
            return;
        };
        let (prompt, sure) = match prompt {
            Prompt::Sure(p) => (p, true),
            Prompt::IfAnswered(p) => (p, false),
        };
        self.known.insert(key, Some(self.candidates.len()));
        self.candidates.push(Candidate {
            id,
            key,
            line: at,
            prompt,
            at: text(message, "timestamp").and_then(|t| time(&t)),
            rewound: false,
            interrupted: false,
            run: self.run,
            sure,
        });
    }

    /// Takes a header; a document of an older version, or one on one line, has its messages in it.
    fn header(&mut self, header: &Value<'_>, at: u64) {
        self.run += 1;
        self.meta(header);
        for message in header.get("messages").iter().flat_map(Value::items) {
            self.message(&message, at + message.start as u64);
        }
    }

    fn meta(&mut self, of: &Value<'_>) {
        let take = |name, into: &mut Option<String>| {
            if let Some(found) = text(of, name) {
                *into = Some(found);
            }
        };
        take("sessionId", &mut self.id);
        take("projectHash", &mut self.hash);
        take("lastUpdated", &mut self.updated);
    }

    fn set(&mut self, set: &Value<'_>) {
        self.meta(set);
        let Some(list) = set.get("messages").filter(Value::is_array) else {
            return;
        };
        let mut now = Vec::new();
        let mut seen = HashSet::new();
        let mut news = false;
        for message in list.items() {
            let Some(id) = text(&message, "id") else {
                continue;
            };
            let key = key(&id);
            if self.new_key(key) {
                news = true;
            }
            if seen.insert(key) {
                now.push(key);
            }
            if self.context.is_none() {
                self.context = workspace_in(&message);
            }
        }
        self.stopped(&now, news);
        self.messages = now;
    }

    /// A list that only lacks its newest prompt, written by the run that took the prompt: the person stopped the turn,
    /// and the client took it back. The files that it had written stay written, so it stays a turn.
    fn stopped(&mut self, now: &[u64], news: bool) {
        let Some(last) = self.candidates.last_mut() else {
            return;
        };
        if !news && last.run == self.run && !now.contains(&last.key) {
            last.interrupted = true;
        }
    }

    /// Drops a message and all later ones; an id that is not in the list empties it, as in the client.
    fn rewind(&mut self, id: &str) {
        let key = key(id);
        let from = self.messages.iter().position(|m| *m == key).unwrap_or(0);
        let dropped: Vec<u64> = self.messages.drain(from..).collect();
        let first = dropped
            .iter()
            .filter_map(|k| self.known.get(k).copied().flatten())
            .min();
        // A stopped turn is in no list any more, and went with the turn before it all the same.
        for candidate in self.candidates.iter_mut().skip(first.unwrap_or(usize::MAX)) {
            candidate.rewound = true;
        }
    }
}

/// Ids are kept as numbers, so that a long session costs eight bytes a message.
fn key(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Visit for Fold {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        let mut id = None;
        let mut kind = String::new();
        while let Some(field) = fields.pull()? {
            if id.is_none() && is_about_the_list(&field) {
                return Ok(Wants::Whole);
            } else if field.is("id") {
                id = field.value()?.text().map(std::borrow::Cow::into_owned);
            } else if field.is("type") {
                kind = field.value()?.text().unwrap_or_default().into_owned();
                if kind != "user" {
                    break;
                }
            } else if field.is("content") && kind == "user" && is_result(&field)? {
                kind.clear();
                break;
            }
        }
        if kind == "user" {
            return Ok(Wants::Whole);
        }
        // A message of which only the id counts is left at its head.
        if let Some(id) = id {
            self.add(&id, &kind);
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let value = Value::head(record);
        if let Some(id) = text(&value, "$rewindTo") {
            self.rewind(&id);
        } else if value.get("id").is_some_and(|i| i.is_string()) {
            self.message(&value, at);
        } else if let Some(set) = value.get("$set") {
            self.set(&set);
        } else if value.get("sessionId").is_some() {
            self.header(&value, at);
        }
    }
}

fn is_about_the_list(field: &Field<'_>) -> bool {
    field.is("$set") || field.is("$rewindTo") || field.is("sessionId")
}

/// Whether the first part of a content is a tool's result: most user messages are.
fn is_result(content: &Field<'_>) -> Scan<bool> {
    let mut part = match content.first_item() {
        Ok(part) => part,
        Err(Stop::More) => return Err(Stop::More),
        Err(Stop::Bad(_)) => return Ok(false),
    };
    Ok(part.pull()?.is_some_and(|f| f.is("functionResponse")))
}

/// The bytes of a document of an older version, which is read as one value.
pub(super) fn document(path: &Path) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    lines::open(path, 0)
        .and_then(|f| f.take(lines::LONGEST as u64 + 1).read_to_end(&mut bytes))
        .map_err(Trouble::io(path))?;
    if bytes.len() > lines::LONGEST {
        return Err(Trouble::Broken {
            what: format!(
                "`{}` is one JSON document of more than {} MB, which is not read",
                path.display(),
                lines::LONGEST >> 20
            ),
        });
    }
    Ok(bytes)
}

/// Where the document begins, and its value when it is whole.
pub(super) fn whole(bytes: &[u8]) -> (usize, Option<Value<'_>>) {
    let lead = bytes.iter().take_while(|b| **b != b'{').count();
    (lead, Value::of(bytes.get(lead..).unwrap_or_default()))
}

/// The workspace that a `<session_context>` tells of.
pub(super) fn workspace_in(message: &Value<'_>) -> Option<String> {
    let content = message.get("content")?;
    let said = content
        .items()
        .find_map(|part| text(&part, "text"))
        .or_else(|| content.text().map(std::borrow::Cow::into_owned))?;
    if !said.trim_start().starts_with("<session_context>") {
        return None;
    }
    let (_, rest) = said.split_once("**Workspace Directories:**")?;
    let line = rest.lines().find(|l| !l.trim().is_empty())?;
    line.trim().strip_prefix("- ").map(str::to_owned)
}
