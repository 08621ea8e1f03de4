//! `rewind show`: what going back to before a turn would change, now.

use chrono::{DateTime, Utc};

use super::preview::{self, View};
use super::report::{self, Stage};
use super::{Context, Outcome, patch, restore};
use crate::cli;
use crate::error::Result;
use crate::model::point::{OnConflict, Scope};
use crate::ops::plan::Plan;
use crate::ops::{Root, decide};
use crate::ui::text::count;
use crate::ui::{age, sanitise, sanitise_lines};

/// So many gaps are named.
const GAPS: usize = 40;

/// Runs the command.
///
/// # Errors
/// The session or turn cannot be found or read.
pub fn run(ctx: &mut Context<'_>, args: &cli::Show) -> Result<Outcome> {
    let read = ctx.read(None)?;
    let turn = read.turn(&args.turn)?;
    let (no, point) = (turn.no, read.point(turn));
    let root = read.root(ctx.env, ctx.global.workspace.as_deref())?;
    ctx.settle_to_look(&root)?;
    let only = restore::only(ctx, &root, &args.path)?;
    let timeline = read.timeline(&root, no, ctx.env)?;
    // As if conflicts were overwritten, so that each difference is shown.
    let plan = decide::restore(
        &root,
        &read.session,
        point,
        Scope::Code,
        timeline,
        &only,
        OnConflict::Overwrite,
    );
    restore::found(ctx, &plan, &args.path)?;
    if ctx.json() {
        let mut out = report::json(&plan, &Stage::Planned, read.format.resume(&read.session));
        out.schema = "rewind.show/1";
        ctx.print_json(&out)?;
        return Ok(Outcome::Done);
    }
    ctx.ui.open_pager(ctx.env, ctx.global.no_pager);
    let at = read.session.turn(no).and_then(|t| t.at);
    let shown = text(ctx, args, &plan, &root, at);
    ctx.ui.close_pager();
    shown?;
    if !args.patch {
        next(ctx, &plan);
    }
    Ok(Outcome::Done)
}

fn text(
    ctx: &mut Context<'_>,
    args: &cli::Show,
    plan: &Plan,
    root: &Root,
    at: Option<DateTime<Utc>>,
) -> Result<()> {
    if args.patch {
        return diffs(ctx, plan, root, "");
    }
    head(ctx, plan, at)?;
    if args.stat {
        let table = patch::table(plan, root, ctx.ui.style(), ctx.ui.width());
        ctx.print(&table)?;
    } else {
        let text = preview::paths(plan, View::Differences, ctx.ui.style());
        if text.is_empty() {
            ctx.print("going back to before it changes no file\n")?;
        } else {
            ctx.print(&format!("going back to before it:\n{text}"))?;
        }
        diffs(ctx, plan, root, "\n")?;
    }
    if !plan.gaps.is_empty() {
        let gaps = preview::gaps(&plan.gaps, GAPS);
        ctx.print(&format!("\nnot covered, so left as it is:\n{gaps}"))?;
    }
    Ok(())
}

fn head(ctx: &mut Context<'_>, plan: &Plan, at: Option<DateTime<Utc>>) -> Result<()> {
    let age = at.map_or(String::new(), |at| format!("  {}", age(at, ctx.env.now)));
    let key = sanitise(&plan.point.key).into_owned();
    let prompt = sanitise_lines(&plan.point.prompt).into_owned();
    let turn = plan.point.turn;
    ctx.print(&format!("turn {turn}  {key}{age}\n{prompt}\n\n"))
}

/// What can be done about it.
fn next(ctx: &mut Context<'_>, plan: &Plan) {
    if !plan.conflicts.is_empty() {
        let n = count(plan.conflicts.len(), "file", "files");
        ctx.ui.warn(&format!(
            "{n} changed since: a restore refuses, unless `--on-conflict` says what becomes of such files"
        ));
    }
    if plan.steps.is_empty() {
        return;
    }
    let words = format!("restore {} --scope code", plan.point.turn);
    let command = ctx.command(&words, ctx.global.session.as_deref());
    ctx.ui.hint(&format!(
        "`{command}` goes there; `--scope both` takes the conversation along"
    ));
}

fn diffs(ctx: &mut Context<'_>, plan: &Plan, root: &Root, between: &str) -> Result<()> {
    for text in patch::each(plan, root, ctx.ui.style()).filter(|t| !t.is_empty()) {
        ctx.print(&format!("{between}{text}"))?;
    }
    Ok(())
}
