//! A plan as text and as JSON: the same lists before and after it is done (`bugs.md` 45).

use std::fmt::Write;

use super::list::gap_out;
use super::words;
use crate::ops::plan::{Act, Conflict, Make, Missing, Plan, SessionMake, SessionStep, Step};
use crate::ui::json::{
    FilePrint, OutsideOut, PathNote, PathOut, Rewind, SessionOut, SessionStepOut, StepOut,
};
use crate::ui::text::count;
use crate::ui::{Paint, Style, path_text, sanitise};

/// How far a plan has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Only planned.
    Planned,
    /// Done, as the operation with this id.
    Done(String),
}

/// The plan, or what was done, in JSON.
#[must_use]
pub fn json(plan: &Plan, stage: &Stage, resume: Option<String>) -> Rewind {
    let (schema, of) = match &plan.act {
        Act::Restore => ("rewind.restore/1", None),
        Act::Undo(of) => ("rewind.undo/1", Some(of.clone())),
        Act::Redo(of) => ("rewind.redo/1", Some(of.clone())),
    };
    Rewind {
        schema,
        status: status(plan, stage),
        operation: match stage {
            Stage::Planned => None,
            Stage::Done(id) => Some(id.clone()).filter(|id| !id.is_empty()),
        },
        of,
        root: PathOut::new(&plan.root),
        session: SessionOut {
            agent: plan.point.agent.clone(),
            id: plan.point.session.clone(),
            path: PathOut::new(&plan.point.path),
            workspace: Some(plan.root.to_string_lossy().into_owned()),
        },
        turn: plan.point.turn,
        turn_id: plan.point.key.clone(),
        prompt: plan.point.prompt.clone(),
        scope: words::scope(plan.scope),
        steps: plan.steps.iter().map(step).collect(),
        session_steps: plan.session.iter().map(session_step).collect(),
        unchanged: plan
            .equal
            .iter()
            .map(|p| PathOut::new(p.as_path()))
            .collect(),
        conflicts: conflicts(plan),
        missing: missing(plan),
        outside: outside(plan),
        unsure: plan
            .unsure
            .iter()
            .map(|p| PathOut::new(p.as_path()))
            .collect(),
        gaps: plan.gaps.iter().map(gap_out).collect(),
        resume,
    }
}

fn conflicts(plan: &Plan) -> Vec<PathNote> {
    let note = |c: &Conflict| PathNote {
        path: PathOut::new(c.path.as_path()),
        reason: words::conflict(c.why).to_owned(),
        turn: None,
    };
    plan.conflicts.iter().map(note).collect()
}

fn missing(plan: &Plan) -> Vec<PathNote> {
    let note = |m: &Missing| PathNote {
        path: PathOut::new(&m.path),
        reason: words::reason(&m.reason),
        turn: Some(m.turn),
    };
    plan.missing.iter().map(note).collect()
}

fn outside(plan: &Plan) -> Vec<OutsideOut> {
    plan.outside
        .iter()
        .map(|(path, before, after)| OutsideOut {
            path: PathOut::new(path.as_path()),
            after_turn: *before,
            before_turn: *after,
        })
        .collect()
}

fn status(plan: &Plan, stage: &Stage) -> &'static str {
    match stage {
        Stage::Planned => "planned",
        Stage::Done(_) if partial(plan) => "partial",
        Stage::Done(_) if nothing(plan) => "unchanged",
        Stage::Done(_) => "done",
    }
}

/// Whether the plan changes nothing.
#[must_use]
pub fn nothing(plan: &Plan) -> bool {
    plan.steps.is_empty() && plan.session.is_empty()
}

/// Whether paths are left out that the point would have had.
#[must_use]
pub fn partial(plan: &Plan) -> bool {
    let written = |path: &std::path::Path| plan.steps.iter().any(|s| s.path.as_path() == path);
    !plan.missing.is_empty() || plan.conflicts.iter().any(|c| !written(c.path.as_path()))
}

fn action(step: &Step) -> &'static str {
    use crate::ops::FileKind::Absent;
    match &step.make {
        Make::Absent(_) => "remove",
        Make::Mode(_) => "mode",
        Make::File { .. } if step.expect.kind == Absent => "create",
        Make::File { .. } => "write",
    }
}

fn step(step: &Step) -> StepOut {
    use crate::ops::FileKind::Absent;
    let now = &step.expect;
    let before = (now.kind != Absent).then(|| FilePrint {
        len: now.len,
        sha256: now.sha256.clone(),
        mode: Some(now.mode),
    });
    let after = match &step.make {
        Make::Absent(_) => None,
        Make::File {
            sha256, len, mode, ..
        } => Some(FilePrint {
            len: *len,
            sha256: crate::ops::hex(sha256),
            mode: *mode,
        }),
        Make::Mode(mode) => Some(FilePrint {
            len: now.len,
            sha256: now.sha256.clone(),
            mode: Some(*mode),
        }),
    };
    StepOut {
        path: PathOut::new(step.path.as_path()),
        action: action(step),
        source: step.source.map(words::source),
        turn: step.turn,
        before,
        after,
    }
}

fn session_step(step: &SessionStep) -> SessionStepOut {
    let (action, keep) = match &step.make {
        SessionMake::Truncate { keep } => ("cut", Some(*keep)),
        SessionMake::Extend(_) => ("extend", None),
        SessionMake::Write(_) => ("write", None),
        SessionMake::Absent => ("remove", None),
    };
    SessionStepOut {
        path: PathOut::new(&step.path),
        action,
        len: step.expect.len,
        keep,
    }
}

/// The paths of a plan, and what is worth knowing of them.
#[must_use]
pub fn text(plan: &Plan, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    for s in &plan.steps {
        let action = format!("{:<6}", action(s));
        let from = match s.source {
            Some(source) => format!("  ({})", words::source(source)),
            None => String::new(),
        };
        line(format!("  {action} {}{from}", path_text(s.path.as_path())));
    }
    for s in &plan.session {
        let what = match &s.make {
            SessionMake::Truncate { keep } => {
                let gone = s.expect.len.unwrap_or(0).saturating_sub(*keep);
                format!(
                    "cut    {} (keeps {keep} bytes, {gone} go to the journal)",
                    path_text(&s.path)
                )
            }
            SessionMake::Extend(_) => format!("extend {}", path_text(&s.path)),
            SessionMake::Write(_) => format!("write  {}", path_text(&s.path)),
            SessionMake::Absent => format!("remove {}", path_text(&s.path)),
        };
        line(format!("  {what}"));
    }
    for (path, a, b) in &plan.outside {
        let what = format!("also takes back a change made outside between turns {a} and {b}");
        line(format!(
            "  {} {}: {what}",
            style.paint(Paint::Warning, "note  "),
            path_text(path.as_path())
        ));
    }
    for path in &plan.unsure {
        let what = "it is not known what the agent left there";
        line(format!(
            "  {} {}: {what}",
            style.paint(Paint::Warning, "note  "),
            path_text(path.as_path())
        ));
    }
    for c in &plan.conflicts {
        line(format!(
            "  {} {}: {}",
            style.paint(Paint::Warning, "differs"),
            path_text(c.path.as_path()),
            words::conflict(c.why)
        ));
    }
    for m in &plan.missing {
        line(format!(
            "  {} {}: {}",
            style.paint(Paint::Warning, "not   "),
            path_text(&m.path),
            words::reason(&m.reason)
        ));
    }
    out
}

/// The gaps in a few lines: many shell commands are one line.
#[must_use]
pub fn gaps(plan: &Plan) -> String {
    let mut out = String::new();
    for g in plan.gaps.iter().take(5) {
        let first = g.detail.lines().next().unwrap_or_default();
        let first: String = first.chars().take(80).collect();
        let what = words::gap(g.kind);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  turn {}: {what}: {}", g.turn, sanitise(&first));
    }
    if plan.gaps.len() > 5 {
        let _ = writeln!(out, "  and {} more", plan.gaps.len() - 5);
    }
    out
}

/// What a plan does, in one line.
#[must_use]
pub fn headline(plan: &Plan) -> String {
    let files = count(plan.steps.len(), "file", "files");
    let talk = if plan.session.is_empty() {
        ""
    } else {
        " and the conversation"
    };
    let first = plan
        .point
        .prompt
        .trim_start()
        .lines()
        .next()
        .unwrap_or_default();
    let first: String = first.chars().take(60).collect();
    let point = format!("before turn {} ({})", plan.point.turn, sanitise(&first));
    match &plan.act {
        Act::Restore if plan.steps.is_empty() && !plan.session.is_empty() => {
            format!("the conversation to {point}")
        }
        Act::Restore => format!("{files}{talk} to {point}"),
        Act::Undo(of) => format!("{files}{talk} to what they were before operation {of}"),
        Act::Redo(of) => {
            format!("{files}{talk} to what they were after the operation that {of} took back")
        }
    }
}
