//! The turns of a rollout, found in one pass.
//!
//! A turn is one task of Codex: from its `task_started` to the next turn. What a person adds while the task runs belongs
//! to it (Codex itself can go back to the start of a task only), and its words join the prompt. Rollouts without tasks
//! have one turn a message, from the lines that only announce it (`turn_context`, environment messages). The response
//! item, the event and the completed item of one message are one message.
//!
//! `thread_rolled_back` counts messages, so the last messages are taken back one by one and a turn goes with its first.

use std::collections::HashSet;
use std::path::PathBuf;

use super::super::json::{Scan, Value};
use super::super::lines::{Visit, Wants};
use super::super::time;
use super::header::Mode;
use super::look::{Look, STARTS, look};
use super::prompts::{self, Spoken};
use super::text;
use crate::model::session::{FileNo, Span, Turn, TurnKind};

/// A turn while its file is read.
struct Draft {
    turn: Turn,
    /// Codex's id of the task.
    task: Option<String>,
    /// Rolled back.
    gone: bool,
    /// Its end is known.
    ended: bool,
}

/// Where a message stands: in which turn, and in which place.
struct Said {
    draft: usize,
    place: Place,
}

/// Where a message stands in its turn.
enum Place {
    First,
    /// Behind so many bytes of the prompt.
    Behind(usize),
}

/// Which records of a message were seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Response,
    Event,
    Item,
}

/// The message that was read last.
struct Last {
    words: String,
    seen: Vec<Origin>,
}

/// A task that is running.
struct Task {
    id: Option<String>,
    start: u64,
    /// The turn that it became.
    draft: Option<usize>,
}

/// A message that a record holds.
struct Message {
    origin: Origin,
    words: String,
    task: Option<String>,
    id: Option<String>,
    time: Option<String>,
    at: u64,
}

/// Collects the turns of a chain of rollouts, oldest first.
pub(super) struct Turns {
    mode: Mode,
    file: FileNo,
    drafts: Vec<Draft>,
    /// The first turn of the file that is read now.
    first: usize,
    said: Vec<Said>,
    last: Option<Last>,
    task: Option<Task>,
    /// Where the lines begin that announce the next turn.
    lead: Option<u64>,
    /// The task id that a `turn_context` named.
    context: Option<String>,
    /// Nothing of the model since the last message.
    quiet: bool,
    keys: HashSet<String>,
    /// The working folder of the environment messages.
    pub(super) cwd: Option<PathBuf>,
}

impl Turns {
    /// Begins without turns.
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Legacy,
            file: FileNo(0),
            drafts: Vec::new(),
            first: 0,
            said: Vec::new(),
            last: None,
            task: None,
            lead: None,
            context: None,
            quiet: false,
            keys: HashSet::new(),
            cwd: None,
        }
    }

    /// Goes on with another file.
    pub(super) fn enter(&mut self, file: FileNo, mode: Mode) {
        self.mode = mode;
        self.file = file;
        self.first = self.drafts.len();
        self.rest();
    }

    /// Ends the file that is read now at this offset.
    pub(super) fn leave(&mut self, end: u64) {
        self.end_turn(end);
    }

    /// The turns that the conversation holds, and how many it no longer does.
    pub(super) fn finish(self) -> (Vec<Turn>, u32) {
        let all = self.drafts.len();
        let mut turns: Vec<Turn> = self
            .drafts
            .into_iter()
            .filter(|d| !d.gone)
            .map(|d| d.turn)
            .collect();
        for (no, turn) in (0..).zip(&mut turns) {
            turn.no = no;
        }
        let gone = u32::try_from(all - turns.len()).unwrap_or(u32::MAX);
        (turns, gone)
    }

    /// Between tasks: nothing is under way.
    fn rest(&mut self) {
        self.task = None;
        self.lead = None;
        self.context = None;
        self.last = None;
        self.quiet = false;
    }

    fn end_turn(&mut self, at: u64) {
        let first = self.first;
        if let Some(draft) = self.drafts.get_mut(first..).and_then(<[_]>::last_mut)
            && !draft.ended
        {
            draft.turn.span.end = at;
            draft.ended = true;
        }
    }

    /// The model said or did something.
    fn output(&mut self) {
        self.quiet = false;
        self.lead = None;
    }

    fn task_started(&mut self, payload: &Value<'_>, at: u64) {
        let id = text(payload, "turn_id");
        self.rest();
        self.task = Some(Task {
            id,
            start: at,
            draft: None,
        });
    }

    fn turn_context(&mut self, payload: &Value<'_>, at: u64) {
        let id = text(payload, "turn_id");
        if let Some(task) = &mut self.task {
            task.id = task.id.take().or(id);
            return;
        }
        // Some versions write it behind the message that it belongs to.
        if self.quiet && self.claim(id.as_deref()) {
            return;
        }
        self.lead.get_or_insert(at);
        self.context = id;
    }

    /// Gives the last turn its task id where it has none yet; whether the record belongs to that turn.
    fn claim(&mut self, id: Option<&str>) -> bool {
        let Some(draft) = self.drafts.last_mut() else {
            return false;
        };
        let Some(id) = id else {
            return true;
        };
        if let Some(task) = &draft.task {
            return task == id;
        }
        draft.task = Some(id.to_owned());
        if self.keys.insert(id.to_owned()) {
            id.clone_into(&mut draft.turn.key);
        }
        true
    }

    fn aborted(&mut self, payload: &Value<'_>) {
        let id = text(payload, "turn_id");
        let review = payload
            .get("reason")
            .is_some_and(|r| r.is_str("review_ended"));
        let hit = self
            .drafts
            .iter_mut()
            .rev()
            .find(|d| !d.gone && (id.is_none() || d.task == id));
        if let Some(draft) = hit.filter(|_| !review) {
            draft.turn.interrupted = true;
        }
        self.rest();
    }

    /// A summary takes the place of all that came before. The turn that still runs is only begun.
    fn compacted(&mut self) {
        let running = self.task.as_ref().and_then(|t| t.draft);
        for (n, draft) in self.drafts.iter_mut().enumerate() {
            draft.turn.compacted |= Some(n) != running;
        }
    }

    fn rolled_back(&mut self, payload: &Value<'_>) {
        let count = payload.get("num_turns").and_then(|n| n.u64()).unwrap_or(0);
        for _ in 0..count {
            let Some(said) = self.said.pop() else {
                break;
            };
            let Some(draft) = self.drafts.get_mut(said.draft) else {
                break;
            };
            match said.place {
                Place::First => draft.gone = true,
                Place::Behind(bytes) => draft.turn.prompt.truncate(bytes),
            }
        }
        self.rest();
    }

    fn spoken(&mut self, spoken: Spoken, payload: &Value<'_>, record: &Value<'_>, at: u64) {
        if self.cwd.is_none() {
            self.cwd = spoken.cwd();
        }
        match spoken {
            // Before the first turn it is the session's own beginning, which stays when that turn is cut.
            Spoken::Context(_) if self.task.is_none() && !self.said.is_empty() => {
                self.lead.get_or_insert(at);
            }
            Spoken::Context(_) => {}
            Spoken::Prompt(_) if self.mode == Mode::Paginated => {
                if self.task.is_none() {
                    self.lead.get_or_insert(at);
                }
            }
            Spoken::Prompt(words) => {
                let task = payload
                    .get("internal_chat_message_metadata_passthrough")
                    .and_then(|m| text(&m, "turn_id"));
                self.message(Message {
                    origin: Origin::Response,
                    words,
                    task,
                    id: text(payload, "id"),
                    time: text(record, "timestamp"),
                    at,
                });
            }
        }
    }

    fn message(&mut self, message: Message) {
        if let Some(last) = &mut self.last
            && !last.seen.contains(&message.origin)
            && (self.quiet || last.words == message.words)
        {
            last.seen.push(message.origin);
            return;
        }
        let task = message
            .task
            .clone()
            .or_else(|| self.task.as_ref().and_then(|t| t.id.clone()))
            .or_else(|| self.context.clone());
        match self.steered(task.as_deref()) {
            Some(draft) => self.steer(draft, &message.words),
            None => self.begin(task, &message),
        }
        self.quiet = true;
        self.lead = None;
        self.last = Some(Last {
            words: message.words,
            seen: vec![message.origin],
        });
    }

    /// The turn that a message joins, if its task already is one.
    fn steered(&self, task: Option<&str>) -> Option<usize> {
        let running = self.task.as_ref().and_then(|t| t.draft);
        let n = self.drafts.len().checked_sub(1)?;
        let last = self.drafts.get(n)?;
        let joins = match task {
            Some(_) => last.task.as_deref() == task,
            None => running == Some(n),
        };
        (joins && !last.gone).then_some(n)
    }

    fn steer(&mut self, draft: usize, words: &str) {
        if let Some(d) = self.drafts.get_mut(draft) {
            let place = Place::Behind(d.turn.prompt.len());
            d.turn.prompt.push_str("\n\n");
            d.turn.prompt.push_str(words);
            self.said.push(Said { draft, place });
        }
    }

    fn begin(&mut self, task: Option<String>, message: &Message) {
        let own = self.task.as_ref().filter(|t| t.draft.is_none());
        let start = own.map(|t| t.start).or(self.lead).unwrap_or(message.at);
        self.end_turn(start);
        let draft = self.drafts.len();
        if let Some(t) = self.task.as_mut().filter(|t| t.draft.is_none()) {
            t.draft = Some(draft);
        }
        let key = self.key(task.as_deref(), message);
        self.said.push(Said {
            draft,
            place: Place::First,
        });
        self.drafts.push(Draft {
            turn: Turn {
                no: 0,
                key,
                prompt: message.words.clone(),
                at: message.time.as_deref().and_then(time),
                kind: TurnKind::Prompt,
                span: Span {
                    file: self.file,
                    start,
                    end: u64::MAX,
                },
                line: message.at,
                interrupted: false,
                compacted: false,
            },
            task,
            gone: false,
            ended: false,
        });
    }

    /// A key that no other turn has: the task's id, the message's, else the place.
    fn key(&mut self, task: Option<&str>, message: &Message) -> String {
        let place = format!("line-{}", message.at);
        let named = [task, message.id.as_deref(), Some(place.as_str())];
        for name in named.into_iter().flatten().filter(|n| !n.is_empty()) {
            if self.keys.insert(name.to_owned()) {
                return name.to_owned();
            }
        }
        // The same offset in two files of a chain.
        let key = format!("{place}-{}", self.drafts.len());
        self.keys.insert(key.clone());
        key
    }

    fn event(&mut self, payload: &Value<'_>, record: &Value<'_>, at: u64) {
        let kind = text(payload, "type").unwrap_or_default();
        match kind.as_str() {
            "task_started" | "turn_started" => self.task_started(payload, at),
            "task_complete" | "turn_complete" => self.rest(),
            "turn_aborted" => self.aborted(payload),
            "thread_rolled_back" => self.rolled_back(payload),
            "item_completed" => self.told(Origin::Item, prompts::item(payload), record, at),
            "user_message" if self.mode != Mode::Paginated => {
                self.told(Origin::Event, prompts::event(payload), record, at);
            }
            _ => {}
        }
    }

    /// A message that an event tells of.
    fn told(&mut self, origin: Origin, words: Option<String>, record: &Value<'_>, at: u64) {
        let (Some(words), Some(payload)) = (words, record.get("payload")) else {
            return;
        };
        self.message(Message {
            origin,
            words,
            task: text(&payload, "turn_id"),
            id: payload.get("item").and_then(|i| text(&i, "id")),
            time: text(record, "timestamp"),
            at,
        });
    }
}

impl Visit for Turns {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let wanted = match look(head)? {
            Look::Context | Look::Compacted | Look::Odd => true,
            Look::Event(kind) => EVENTS.contains(&kind.as_ref()),
            Look::Completed(kind) => kind == "UserMessage",
            Look::Message(role) => {
                if role == "assistant" {
                    self.output();
                }
                role == "user"
            }
            Look::Item(kind, _) => {
                if kind == "reasoning" || kind.ends_with("_call") || kind.ends_with("_output") {
                    self.output();
                }
                false
            }
            Look::Other => false,
        };
        Ok(if wanted { Wants::Whole } else { Wants::No })
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        let kind = text(&record, "type").unwrap_or_default();
        if kind == "compacted" {
            return self.compacted();
        }
        let payload = record.get("payload").unwrap_or(record);
        match kind.as_str() {
            "event_msg" => self.event(&payload, &record, at),
            "turn_context" => self.turn_context(&payload, at),
            "response_item" | "message" => {
                if let Some(spoken) = prompts::message(&payload) {
                    self.spoken(spoken, &payload, &record, at);
                }
            }
            _ => {}
        }
    }
}

/// The events that begin, end or take back turns, or tell of a message.
const EVENTS: [&str; 7] = [
    "task_started",
    "turn_started",
    "task_complete",
    "turn_complete",
    "turn_aborted",
    "thread_rolled_back",
    "user_message",
];
