//! Carries a plan out, the same way for restore, undo and redo: preview, ask, apply, report, next steps. What is refused
//! is refused in a dry run too, in the same words (`bugs.md` 45).

use super::preview::{self, Tense, View};
use super::report::{self, Stage};
use super::{Context, Outcome, words};
use crate::error::{Error, Kind, Result};
use crate::model::point::OnConflict;
use crate::ops::Root;
use crate::ops::plan::{Act, Conflict, ConflictKind, Plan};
use crate::ui::text::count;
use crate::ui::{Style, quiet_pipe};

/// So many gaps are told of before or after a restore; `show` tells of more.
const GAPS: usize = 5;

/// What the flags say of asking and telling.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// Do not ask.
    pub yes: bool,
    /// Do nothing.
    pub dry_run: bool,
    /// What becomes of conflicts.
    pub on_conflict: OnConflict,
    /// Standard output holds the prompt alone.
    pub print_prompt: bool,
}

/// Without a terminal nobody can say yes, so it must have been said (`bugs.md` 44).
///
/// # Errors
/// [`Kind::Usage`] when nobody can be asked.
pub fn may_ask(ctx: &Context<'_>, said: bool) -> Result<()> {
    if said || (ctx.env.interactive && !ctx.json()) {
        return Ok(());
    }
    let why = if ctx.json() {
        "with `--json` nobody is asked for a confirmation"
    } else {
        "there is no terminal to ask for a confirmation"
    };
    Err(Error::new(Kind::Usage, why)
        .hint("add `--yes` to do it, or `--dry-run` to see what would be done"))
}

/// Previews, asks, applies, reports: the same for restore, undo and redo.
///
/// # Errors
/// Conflicts, a no, or what `ops::apply` says.
pub fn carry_out(
    ctx: &mut Context<'_>,
    plan: &Plan,
    root: &Root,
    ask: Ask,
    resume: Option<String>,
) -> Result<Outcome> {
    if ask.dry_run {
        return dry_run(ctx, plan, ask, resume);
    }
    let refused = refuse_conflicts(ctx, plan, ask.on_conflict);
    ctx.tell_planned(plan, &stage(&refused), resume.as_deref())?;
    refused?;
    if report::nothing(plan) {
        return unchanged(ctx, plan, ask, resume);
    }
    if !ask.yes {
        // What is asked about must be on the screen before the question; where it cannot be, nothing is done.
        preview(ctx, plan, ask, Tense::Would)
            .and_then(|()| quiet_pipe(ctx.ui.finish()).map_err(super::stdout))
            .map_err(|e| e.changed("nothing was changed"))?;
        ctx.confirm("Do it?")?;
    }
    let done = ctx.apply(plan, root)?;
    if ctx.json() {
        ctx.print_done(plan, done, resume)?;
        return Ok(outcome(plan));
    }
    if ask.yes {
        tell_paths(ctx, plan, ask)?;
    }
    ctx.ui.say(&preview::headline(plan, Tense::Did));
    tell_left(ctx, plan);
    tell_gaps(ctx, plan);
    Ok(outcome(plan))
}

fn outcome(plan: &Plan) -> Outcome {
    if report::partial(plan) {
        Outcome::Partial
    } else {
        Outcome::Done
    }
}

/// Shows the plan; one that would be refused ends as it would then (`bugs.md` 45).
fn dry_run(
    ctx: &mut Context<'_>,
    plan: &Plan,
    ask: Ask,
    resume: Option<String>,
) -> Result<Outcome> {
    let refused = refuse_conflicts(ctx, plan, ask.on_conflict);
    let (stage, tense) = (stage(&refused), tense(&refused));
    if ctx.json() {
        ctx.tell_planned(plan, &stage, resume.as_deref())?;
        ctx.print_json(&report::json(plan, &stage, resume))?;
    } else {
        preview(ctx, plan, ask, tense)?;
    }
    refused.map(|()| Outcome::Done)
}

fn stage(refused: &Result<()>) -> Stage {
    match refused {
        Ok(()) => Stage::Planned,
        Err(_) => Stage::Refused,
    }
}

fn tense(refused: &Result<()>) -> Tense {
    match refused {
        Ok(()) => Tense::Would,
        Err(_) => Tense::WouldNot,
    }
}

fn unchanged(
    ctx: &mut Context<'_>,
    plan: &Plan,
    ask: Ask,
    resume: Option<String>,
) -> Result<Outcome> {
    if ctx.json() {
        ctx.print_json(&report::json(plan, &Stage::Done(String::new()), resume))?;
        return Ok(outcome(plan));
    }
    tell_paths(ctx, plan, ask)?;
    ctx.ui.say(&preview::nothing(plan));
    tell_left(ctx, plan);
    tell_gaps(ctx, plan);
    Ok(outcome(plan))
}

fn preview(ctx: &mut Context<'_>, plan: &Plan, ask: Ask, tense: Tense) -> Result<()> {
    let idle = report::nothing(plan) && tense == Tense::Would;
    if !idle {
        let head = preview::headline(plan, tense);
        ctx.print(&format!("{head}\n"))?;
    }
    tell_paths(ctx, plan, ask)?;
    if idle {
        ctx.ui.say(&preview::nothing(plan));
    }
    // A refused plan leaves everything, and the refusal says so.
    if tense == Tense::Would {
        tell_left(ctx, plan);
    }
    tell_gaps(ctx, plan);
    Ok(())
}

/// The paths, with what becomes of each; as talk where standard output is to hold the prompt alone.
fn tell_paths(ctx: &mut Context<'_>, plan: &Plan, ask: Ask) -> Result<()> {
    let view = View::Doing(ask.on_conflict);
    if !ask.print_prompt {
        let text = preview::paths(plan, view, ctx.ui.style());
        return ctx.print(&text);
    }
    let text = preview::paths(plan, view, Style::Plain);
    if !text.is_empty() {
        ctx.ui.say(text.trim_end());
    }
    Ok(())
}

/// Not all went back: said where the eye is, and not only in the list.
fn tell_left(ctx: &mut Context<'_>, plan: &Plan) {
    let n = report::left(plan);
    let words = match n {
        0 => return,
        1 => "1 file is left as it is: see above".to_owned(),
        n => format!("{n} files are left as they are: see above"),
    };
    ctx.ui.warn(&words);
}

fn tell_gaps(ctx: &mut Context<'_>, plan: &Plan) {
    if !plan.scope.code() || plan.gaps.is_empty() {
        return;
    }
    ctx.ui.say("not covered, so left as it is:");
    ctx.ui.say(preview::gaps(&plan.gaps, GAPS).trim_end());
}

/// # Errors
/// [`Kind::Conflict`] when anybody changed a file since and nothing was said of what to do then.
fn refuse_conflicts(ctx: &Context<'_>, plan: &Plan, on_conflict: OnConflict) -> Result<()> {
    if plan.conflicts.is_empty() || on_conflict != OnConflict::Fail {
        return Ok(());
    }
    let n = plan.conflicts.len();
    let files = count(n, "file", "files");
    let them = if n == 1 { "it" } else { "them" };
    let sure = |c: &Conflict| c.why != ConflictKind::NotKnown;
    let changed = if plan.conflicts.iter().all(sure) {
        "changed"
    } else {
        "may have changed"
    };
    let message = match &plan.act {
        Act::Restore => format!(
            "turn {} cannot be gone back to: {files} {changed} since the agent wrote {them}",
            plan.point.turn
        ),
        Act::Undo(of) | Act::Redo(of) => {
            format!("operation {of} cannot be taken back: {files} changed since")
        }
    };
    let mut error = Error::new(Kind::Conflict, message)
        .hint(format!(
            "`--on-conflict keep` leaves {them} and does the rest"
        ))
        .hint(format!(
            "`--on-conflict overwrite` replaces {them}; an undo brings {them} back"
        ))
        .hint("`--on-conflict beside` writes the old content to `<name>.rewind`");
    if plan.act == Act::Restore {
        let session = ctx.global.session.as_deref();
        let show = ctx.command(&format!("show {}", plan.point.turn), session);
        error = error.hint(format!("`{show}` shows the differences"));
    }
    for c in &plan.conflicts {
        error = error.path(c.path.as_path(), words::conflict(c.why, &plan.act));
    }
    Err(error)
}

/// What to type next.
pub fn next_steps(ctx: &mut Context<'_>, plan: &Plan, resume: Option<String>) {
    if ctx.json() || report::nothing(plan) {
        return;
    }
    if let Some(resume) = resume {
        ctx.ui.hint(&format!("go on with `{resume}`"));
    }
    // What takes an undo back is a redo: another undo would take back what was done before.
    let (back, words) = match plan.act {
        Act::Restore | Act::Redo(_) => ("undo", "takes this back"),
        Act::Undo(_) => ("redo", "does again what this took back"),
    };
    let command = ctx.command(back, None);
    ctx.ui.hint(&format!("`{command}` {words}"));
}
