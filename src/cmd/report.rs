//! A plan as JSON: the same lists before and after it is done (`bugs.md` 45). As text it is in `cmd::preview`.

use std::collections::BTreeSet;

use super::list::gap_out;
use super::words;
use crate::ops::plan::{Act, Conflict, Make, Missing, Plan, SessionMake, SessionStep, Step};
use crate::ui::json::{
    FilePrint, OutsideOut, PathNote, PathOut, Rewind, SessionOut, SessionStepOut, StepOut,
};

/// How far a plan has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Only planned.
    Planned,
    /// Only planned, and to be refused: files differ and nothing was said of what to do then.
    Refused,
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
            Stage::Planned | Stage::Refused => None,
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
        folders: folders(plan),
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

/// The paths that somebody changed since.
#[must_use]
pub fn conflicts(plan: &Plan) -> Vec<PathNote> {
    let note = |c: &Conflict| PathNote {
        path: PathOut::new(c.path.as_path()),
        reason: words::conflict(c.why, &plan.act).to_owned(),
        turn: None,
    };
    plan.conflicts.iter().map(note).collect()
}

/// The paths that are left.
#[must_use]
pub fn missing(plan: &Plan) -> Vec<PathNote> {
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
        Stage::Refused => "refused",
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
    left(plan) > 0
}

/// How many paths are left as they are though the point had them otherwise.
#[must_use]
pub fn left(plan: &Plan) -> usize {
    let written: BTreeSet<_> = plan.steps.iter().map(|s| &s.path).collect();
    let kept = plan.conflicts.iter().filter(|c| !written.contains(&c.path));
    plan.missing.len() + kept.count()
}

fn folders(plan: &Plan) -> Vec<PathOut> {
    let all = emptied(plan);
    all.iter().map(|f| PathOut::new(f)).collect()
}

/// The folders that go if the steps leave them empty, each once, deepest first.
#[must_use]
pub fn emptied(plan: &Plan) -> Vec<&std::path::Path> {
    let mut all = BTreeSet::new();
    for step in &plan.steps {
        if let Make::Absent(folders) = &step.make {
            all.extend(folders.iter().map(crate::ops::SafePath::as_path));
        }
    }
    // A folder sorts before what is in it.
    all.into_iter().rev().collect()
}

/// What a step does to its path.
#[must_use]
pub fn action(step: &Step) -> &'static str {
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
