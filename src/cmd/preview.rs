//! A plan in words, before it is done and after: the paths with what becomes of each, what was left alone and why, what
//! no restore covers. What a reader must be able to tell from it: what changes, what does not, where the old bytes go.

use std::fmt::Write;

use super::report;
use super::words;
use crate::model::edit::Gap;
use crate::model::point::OnConflict;
use crate::ops::plan::{Act, Conflict, Make, Missing, Plan, SessionMake, SessionStep, Step};
use crate::ui::diff::Stat;
use crate::ui::text::count;
use crate::ui::{Paint, Style, path_text, sanitise};

/// A prompt in a headline is cut to so many characters.
const PROMPT: usize = 60;

/// What the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Every difference, whatever a restore would do with it.
    Differences,
    /// What is done, with this policy for files that somebody changed.
    Doing(OnConflict),
}

/// Whether it is about to be done or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    /// It would be done.
    Would,
    /// It would be refused, and done only without the files that differ.
    WouldNot,
    /// It was done.
    Did,
}

/// The paths of a plan, one line each, with what is worth knowing of them.
#[must_use]
pub fn paths(plan: &Plan, view: View, style: Style) -> String {
    paths_counted(plan, view, style, &[])
}

/// As [`paths`], with how many lines each step adds and removes, where that is known.
#[must_use]
pub fn paths_counted(plan: &Plan, view: View, style: Style, counts: &[Option<Stat>]) -> String {
    let mut out = String::new();
    let mut line = |(label, paint, words): (&str, Paint, String)| {
        let label = style.paint(paint, &format!("{label:<7}"));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {label} {words}");
    };
    for (at, s) in plan.steps.iter().enumerate() {
        let (label, paint, words) = step(s);
        let stat = counts.get(at).copied().flatten();
        let stat = stat.filter(|s| *s != Stat::default());
        let stat = stat.map_or(String::new(), |s| format!("  {s}"));
        line((label, paint, format!("{words}{stat}")));
    }
    for folder in report::emptied(plan) {
        let words = format!("{}/  (if that leaves it empty)", path_text(folder));
        line(("remove", Paint::Plain, words));
    }
    plan.session.iter().map(session).for_each(&mut line);
    for (path, a, b) in &plan.outside {
        let path = path_text(path.as_path());
        let words =
            format!("{path}: also takes back a change made outside between turns {a} and {b}");
        line(("note", Paint::Warning, words));
    }
    for path in &plan.unsure {
        let path = path_text(path.as_path());
        let words = format!(
            "{path}: the record does not tell what the agent left, so a later change of yours goes back with it"
        );
        line(("note", Paint::Warning, words));
    }
    let conflict = |c| conflict(plan, c, view);
    plan.conflicts.iter().map(conflict).for_each(&mut line);
    plan.missing.iter().map(missing).for_each(&mut line);
    out
}

fn step(step: &Step) -> (&'static str, Paint, String) {
    let from = match (&step.make, step.source, step.turn) {
        (Make::Mode(mode), ..) => {
            format!("  ({:04o} to {:04o})", step.expect.mode & 0o7777, mode)
        }
        (Make::Absent(_), _, Some(turn)) => format!("  (did not exist before turn {turn})"),
        (Make::File { .. }, Some(source), _) => format!("  ({})", words::source_text(source)),
        _ => String::new(),
    };
    let path = path_text(step.path.as_path());
    (report::action(step), Paint::Plain, format!("{path}{from}"))
}

fn session(step: &SessionStep) -> (&'static str, Paint, String) {
    let path = path_text(&step.path);
    let len = step.expect.len.unwrap_or(0);
    let (label, words) = match &step.make {
        SessionMake::Truncate { keep } => {
            let gone = len.saturating_sub(*keep);
            let words =
                format!("{path}  (the first {keep} bytes stay, {gone} are kept for an undo)");
            ("cut", words)
        }
        SessionMake::Extend(_) => ("extend", format!("{path}  (behind its {len} bytes)")),
        SessionMake::Write(_) => ("write", path),
        SessionMake::Absent => ("remove", path),
    };
    (label, Paint::Plain, words)
}

fn conflict(plan: &Plan, c: &Conflict, view: View) -> (&'static str, Paint, String) {
    let path = path_text(c.path.as_path());
    let why = words::conflict(c.why, &plan.act);
    let (label, more) = match view {
        View::Differences | View::Doing(OnConflict::Fail) => ("differs", String::new()),
        View::Doing(_) if plan.steps.iter().any(|s| s.path == c.path) => {
            ("note", "; what is replaced is kept for an undo".to_owned())
        }
        View::Doing(OnConflict::Beside) => match beside(plan, c) {
            Some(step) => {
                let free = path_text(step.path.as_path());
                ("left", format!("; its old content goes to {free}"))
            }
            None => ("left", String::new()),
        },
        View::Doing(_) => ("left", String::new()),
    };
    (label, Paint::Warning, format!("{path}: {why}{more}"))
}

/// The step that writes the old content beside a file.
fn beside<'p>(plan: &'p Plan, c: &Conflict) -> Option<&'p Step> {
    let mut name = c.path.name().to_os_string();
    name.push(".rewind");
    let name = name.as_encoded_bytes();
    let fits = |s: &&Step| {
        let same_folder = s.path.as_path().parent() == c.path.as_path().parent();
        let rest = s.path.name().as_encoded_bytes().strip_prefix(name);
        same_folder && rest.is_some_and(|r| r.is_empty() || r.starts_with(b"."))
    };
    plan.steps.iter().find(fits)
}

fn missing(m: &Missing) -> (&'static str, Paint, String) {
    let words = format!("{}: {}", path_text(&m.path), words::reason(&m.reason));
    ("left", Paint::Warning, words)
}

/// What no restore covers, at most so many lines; many shell commands are one line.
#[must_use]
pub fn gaps(gaps: &[Gap], most: usize) -> String {
    let mut out = String::new();
    for g in gaps.iter().take(most) {
        let first = g.detail.trim_start().lines().next().unwrap_or_default();
        let first: String = first.chars().take(80).collect();
        let what = words::gap_text(g.kind);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  turn {}: {what}: {}", g.turn, sanitise(&first));
    }
    if gaps.len() > most {
        let _ = writeln!(out, "  and {} more (`--json` has all)", gaps.len() - most);
    }
    out
}

/// What a plan does, in one line.
#[must_use]
pub fn headline(plan: &Plan, tense: Tense) -> String {
    let (takes, brings) = match tense {
        Tense::Would => ("would take", "would bring"),
        Tense::WouldNot => (
            "refused as it stands; `--on-conflict keep` would take",
            "refused as it stands; `--on-conflict keep` would bring",
        ),
        Tense::Did => ("took", "brought"),
    };
    let what = what(plan);
    match &plan.act {
        Act::Restore => {
            let first = words::first_line(&plan.point.prompt);
            let first: String = first.chars().take(PROMPT).collect();
            let turn = plan.point.turn;
            format!(
                "{takes} {what} back to before turn {turn} ({})",
                sanitise(&first)
            )
        }
        Act::Undo(of) => format!("{brings} {what} back to before operation {of}"),
        Act::Redo(of) => format!("{brings} {what} back to before the undo {of}"),
    }
}

fn what(plan: &Plan) -> String {
    let files = count(plan.steps.len(), "file", "files");
    match (plan.steps.len(), plan.session.is_empty()) {
        (_, true) => files,
        (0, false) => "the conversation".to_owned(),
        (_, false) => format!("{files} and the conversation"),
    }
}

/// Why there is nothing to do.
#[must_use]
pub fn nothing(plan: &Plan) -> String {
    let point = match &plan.act {
        Act::Restore => format!("turn {}", plan.point.turn),
        Act::Undo(of) => format!("operation {of}"),
        Act::Redo(of) => format!("the undo {of}"),
    };
    match (report::left(plan), plan.equal.len()) {
        (0, 0) if plan.act == Act::Restore => {
            format!("nothing to do: no edit of a file is recorded from {point} on")
        }
        (0, 0) => format!("nothing to do: what was asked for is already as before {point}"),
        (0, n) => format!(
            "nothing to do: {} already as before {point}",
            count(n, "file is", "files are")
        ),
        _ => "nothing was changed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edit::GapKind;

    #[test]
    fn many_gaps_are_counted_and_one_line_each() {
        let all: Vec<Gap> = (0..7)
            .map(|turn| Gap {
                turn,
                kind: GapKind::Shell,
                detail: "\n  make\x1b[2J all\nsecond".to_owned(),
            })
            .collect();
        let text = gaps(&all, 5);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(
            text.starts_with("  turn 0: shell command: make\\u{1b}[2J all\n"),
            "{text}"
        );
        assert!(text.ends_with("and 2 more (`--json` has all)\n"), "{text}");
        assert!(!gaps(&all, 7).contains("more"));
    }
}
