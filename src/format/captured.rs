//! Sessions that are known by our captures alone: those of agents whose own sessions are not read ([`super::named`]), such as
//! `OpenCode`, which keeps them in a database. The turns are the checkpoints that the hooks opened.
//!
//! ```text
//! <state>/captures/<session>.ckpt/current.json    {"turn":1,"agent":"opencode","root":"/w",…}
//!                                 turn-<N>.json    {"turn":0,"prompt":"rename foo","time":"…","files":[…]}
//! ```
//!
//! Files go back; of the conversation nothing is known. What the calls did stands in the checkpoints, not here.

use std::path::{Path, PathBuf};

use super::json::Value;
use super::named::Named;
use super::record::{entries, text};
use super::{Access, Alive, Card, Format, Head, Trouble, chat, lines, time};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::{FileNo, Session, Span, Turn, TurnKind, Warnings};

/// Sessions known by our captures.
pub struct Captured;

/// The name that stands for any agent.
pub const NAME: &str = "captured";
const OWN: &str = "current.json";
const WHY: &str =
    "only the files of this session were captured: its conversation is the agent's own";

/// The agent that the captures are of.
fn agent(record: &Value<'_>) -> Option<&'static Named> {
    let agent = text(record, "agent").and_then(|a| Named::of_agent(&a))?;
    let ours = record.get("turn").is_some() && record.get("opened").is_some();
    ours.then_some(agent)
}

/// The session's id: the folder's name without its end.
fn id(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_stem);
    folder
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The checkpoints of a folder in order: number and file.
fn records(folder: &Path) -> Vec<(u32, PathBuf)> {
    let number = |path: &PathBuf| -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        let digits = name.strip_prefix("turn-")?.strip_suffix(".json")?;
        digits.parse().ok()
    };
    let all = entries(folder).into_iter();
    let mut out: Vec<_> = all.filter_map(|p| Some((number(&p)?, p))).collect();
    out.sort();
    // So many files may be named.
    out.truncate(usize::from(u16::MAX - 1));
    out
}

fn turn(path: &Path, no: u32, file: FileNo) -> Option<Turn> {
    let bytes = lines::read_whole(path, lines::LONGEST).ok()?;
    let record = Value::of(&bytes)?;
    Some(Turn {
        no,
        key: text(&record, "messageId").unwrap_or_else(|| format!("checkpoint-{no}")),
        prompt: text(&record, "prompt")?,
        at: text(&record, "time").and_then(|t| time(&t)),
        kind: TurnKind::Prompt,
        span: Span {
            file,
            start: 0,
            end: bytes.len() as u64,
        },
        line: 0,
        interrupted: false,
        compacted: false,
    })
}

impl Format for Captured {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "captured"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    fn is(&self, head: &Head) -> bool {
        let own = head.path.file_name().is_some_and(|n| n == OWN);
        own && head.records().next().is_some_and(|r| agent(&r).is_some())
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(captures) = env.state.as_ref().map(|s| s.join("captures")) else {
            return Vec::new();
        };
        let mut out: Vec<PathBuf> = entries(&captures).iter().map(|f| f.join(OWN)).collect();
        out.retain(|p| p.is_file());
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let first = head.records().next();
        let folder = head.path.parent().unwrap_or(Path::new(""));
        let turn = records(folder)
            .first()
            .and_then(|(_, path)| turn(path, 0, FileNo(0)));
        Card {
            id: id(&head.path),
            root: first.and_then(|r| text(&r, "root")).map(PathBuf::from),
            at: turn.as_ref().and_then(|t| t.at),
            prompt: turn.map(|t| t.prompt),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let bytes = lines::read_whole(path, lines::LONGEST).map_err(Trouble::io(path))?;
        let root = Value::of(&bytes).and_then(|r| text(&r, "root"));
        let mut files = vec![path.to_path_buf()];
        let mut turns: Vec<Turn> = Vec::new();
        for (_, record) in records(path.parent().unwrap_or(Path::new(""))) {
            let (Ok(no), Ok(file)) = (u32::try_from(turns.len()), u16::try_from(files.len()))
            else {
                break;
            };
            if let Some(turn) = turn(&record, no, FileNo(file)) {
                turns.push(turn);
                files.push(record);
            }
        }
        super::record::apart(&mut turns);
        Ok(Session {
            agent: NAME,
            id: id(path),
            files,
            root: root.map(PathBuf::from),
            turns,
            abandoned: 0,
            len: bytes.len() as u64,
            warnings: Warnings::default(),
        })
    }

    fn calls(&self, _session: &Session, _from: u32, _env: &Env) -> Result<Calls, Trouble> {
        Ok(Calls::default())
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        chat::refuse(WHY)
    }

    fn fork(&self, _: &Session, _: u32, _: &NewSession, _: &Env) -> Result<Fork, Trouble> {
        chat::refuse(WHY)
    }

    fn live(&self, _session: &Session, _env: &Env) -> Option<Alive> {
        None
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}
