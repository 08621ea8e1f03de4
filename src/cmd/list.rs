//! `rewind list`: the turns of a session, newest last.

use std::collections::BTreeMap;

use super::words;
use super::{Context, Outcome};
use crate::cli;
use crate::error::Result;
use crate::model::edit::GapKind;
use crate::model::session::{Session, Turn};
use crate::ops::coverage::{self, Coverage, Covered, Known, Touched};
use crate::ui::json::{self, FileOut, GapOut, PathOut, SessionOut, TurnOut, TurnRow, WarningOut};
use crate::ui::text::{Cell, Column, Table, count};
use crate::ui::{Paint, age, sanitise};

/// Runs the command.
///
/// # Errors
/// The session cannot be found or read.
pub fn run(ctx: &mut Context<'_>, args: &cli::List) -> Result<Outcome> {
    let read = ctx.read(args.of.as_deref())?;
    // Whatever a killed run left is settled before anything is shown of the folder; a session whose folder is gone is
    // listed all the same.
    if let Ok(root) = read.root(ctx.env, ctx.global.workspace.as_deref()) {
        ctx.settle_to_look(&root)?;
    }
    let session = &read.session;
    let skip = args
        .last
        .map_or(0, |n| session.turns.len().saturating_sub(n));
    let turns = session.turns.get(skip..).unwrap_or_default();
    let covered = match turns.first() {
        Some(first) => {
            let calls = read.calls(first.no, ctx.env)?;
            coverage::of(session, &calls, &read.checkpoints(ctx.env)?)
        }
        None => BTreeMap::new(),
    };
    if ctx.json() {
        ctx.print_json(&list(session, turns, &covered))?;
        return Ok(Outcome::Done);
    }
    if turns.is_empty() {
        let title = read.format.title();
        let id = sanitise(&session.id).into_owned();
        ctx.ui.say(&format!("{title} session {id} has no turns"));
        return Ok(Outcome::Done);
    }
    let text = table(ctx, turns, &covered).text(ctx.ui.style(), ctx.ui.width());
    ctx.print(&text)?;
    notes(ctx, read.format.title(), session);
    legend(ctx, &covered);
    if covered.values().any(|c| c.coverage() == Coverage::Partial) {
        let name = args.of.as_deref().or(ctx.global.session.as_deref());
        let command = ctx.command("doctor", name);
        ctx.ui
            .hint(&format!("`{command}` tells why, and what to do about it"));
    }
    if let Some(last) = turns.last() {
        let name = args.of.as_deref().or(ctx.global.session.as_deref());
        let command = ctx.command(&format!("show {}", last.no), name);
        ctx.ui.hint(&format!(
            "`{command}` shows what going back to before turn {} would change",
            last.no
        ));
    }
    Ok(Outcome::Done)
}

/// What a person should know beside the turns.
fn notes(ctx: &mut Context<'_>, title: &str, session: &Session) {
    let n = count(session.turns.len(), "turn", "turns");
    let id = sanitise(&session.id).into_owned();
    ctx.ui.say(&format!("{title} session {id}, {n}"));
    if session.abandoned > 0 {
        let n = count(session.abandoned as usize, "turn", "turns");
        ctx.ui
            .say(&format!("not listed: {n} that the conversation has left"));
    }
    for w in session.warnings.all() {
        let words = words::oddity_text(w.oddity, w.count);
        ctx.ui
            .warn(&format!("{words}, first at byte {}", w.first.1));
    }
}

/// What the marks mean, where there are any.
fn legend(ctx: &mut Context<'_>, covered: &BTreeMap<u32, Covered>) {
    let any = |mark| covered.values().any(|c| Mark::of(c) == Some(mark));
    if any(Mark::NotShell) {
        ctx.ui
            .say("not shell: what the shell commands of that turn did to files is not recorded");
    }
    if any(Mark::InPart) || any(Mark::No) {
        ctx.ui
            .say("in part, no: what some or all of the files were before is not known for certain");
    }
}

fn table(ctx: &Context<'_>, turns: &[Turn], covered: &BTreeMap<u32, Covered>) -> Table {
    let mut table = Table::new([
        Column::Right("turn"),
        Column::Left("id"),
        Column::Left("age"),
        Column::Right("files"),
        Column::Left("covered"),
        Column::Fitted("prompt"),
    ]);
    let none = Covered::default();
    for turn in turns {
        let covered = covered.get(&turn.no).unwrap_or(&none);
        let files = match covered.files.len() {
            0 => String::new(),
            n => n.to_string(),
        };
        let (mark, paint) = Mark::of(covered).map_or(("", Paint::Plain), Mark::text);
        let id: String = turn.key.chars().take(8).collect();
        table.row([
            Cell::new(turn.no.to_string()),
            Cell::painted(id, Paint::Place),
            Cell::new(turn.at.map_or("?".to_owned(), |at| age(at, ctx.env.now))),
            Cell::new(files),
            Cell::painted(mark, paint),
            Cell::new(prompt(turn)),
        ]);
    }
    table
}

/// The first line of the prompt, with what else is worth knowing of the turn.
fn prompt(turn: &Turn) -> String {
    let mut text = match words::first_line(&turn.prompt) {
        "" => "(no words)".to_owned(),
        first => first.to_owned(),
    };
    if turn.interrupted {
        text.push_str(" (interrupted)");
    }
    if turn.compacted {
        text.insert_str(0, "(compacted) ");
    }
    text
}

/// How much of a turn can be taken back, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// All of it.
    All,
    /// All but what shell commands did.
    NotShell,
    /// Some of it.
    InPart,
    /// None of it for certain.
    No,
}

impl Mark {
    /// The mark of a turn; none for one that changed no file.
    #[must_use]
    pub fn of(covered: &Covered) -> Option<Self> {
        let shell = covered.gaps.iter().any(|g| g.kind == GapKind::Shell);
        let unknown = |f: &Touched| f.known == Known::Unknown;
        match covered.coverage() {
            Coverage::None => None,
            Coverage::Full => Some(Self::All),
            Coverage::Partial if shell && !covered.files.iter().any(unknown) => {
                Some(Self::NotShell)
            }
            Coverage::Partial if covered.files.iter().all(unknown) => Some(Self::No),
            Coverage::Partial => Some(Self::InPart),
        }
    }

    /// The mark as it is shown.
    #[must_use]
    pub fn text(self) -> (&'static str, Paint) {
        match self {
            Self::All => ("all", Paint::Plain),
            Self::NotShell => ("not shell", Paint::Warning),
            Self::InPart => ("in part", Paint::Warning),
            Self::No => ("no", Paint::Warning),
        }
    }
}

fn list(session: &Session, turns: &[Turn], covered: &BTreeMap<u32, Covered>) -> json::List {
    let none = Covered::default();
    json::List {
        schema: "rewind.list/1",
        session: session_out(session),
        total: session.turns.len(),
        abandoned: session.abandoned,
        turns: turns
            .iter()
            .map(|t| row(t, covered.get(&t.no).unwrap_or(&none)))
            .collect(),
        warnings: session
            .warnings
            .all()
            .iter()
            .map(|w| WarningOut {
                kind: words::oddity(w.oddity),
                count: w.count,
                offset: w.first.1,
            })
            .collect(),
    }
}

/// A session as the JSON of every command names it.
#[must_use]
pub fn session_out(session: &Session) -> SessionOut {
    SessionOut {
        agent: session.agent.to_owned(),
        id: session.id.clone(),
        path: PathOut::new(session.path()),
        workspace: session
            .root
            .as_deref()
            .map(|r| r.to_string_lossy().into_owned()),
    }
}

fn row(turn: &Turn, covered: &Covered) -> TurnRow {
    TurnRow {
        turn: TurnOut {
            turn: turn.no,
            id: turn.key.clone(),
            at: turn.at.map(json::time),
            prompt: turn.prompt.clone(),
            kind: words::turn_kind(turn.kind),
            interrupted: turn.interrupted,
            compacted: turn.compacted,
        },
        files: covered
            .files
            .iter()
            .map(|f| FileOut {
                path: PathOut::new(&f.path),
                known: words::known(f.known),
                source: words::source(f.source),
            })
            .collect(),
        coverage: words::coverage(covered.coverage()),
        gaps: covered.gaps.iter().map(gap_out).collect(),
    }
}

/// A gap as the JSON of every command names it.
#[must_use]
pub fn gap_out(gap: &crate::model::edit::Gap) -> GapOut {
    GapOut {
        turn: gap.turn,
        kind: words::gap(gap.kind),
        detail: gap.detail.clone(),
    }
}
