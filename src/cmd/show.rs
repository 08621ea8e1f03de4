//! `rewind show`: what going back to before a turn would change, now.

use chrono::{DateTime, Utc};

use super::preview::{self, View};
use super::report::{self, Stage};
use super::{Context, Outcome};
use crate::cli;
use crate::error::Result;
use crate::model::point::{OnConflict, Scope};
use crate::ops::plan::{Make, Plan, Step};
use crate::ops::{FileKind, Root, decide};
use crate::ui::diff::{self, Side};
use crate::ui::text::count;
use crate::ui::{Style, age, sanitise, sanitise_lines};

/// Files larger than this, in bytes, are named with their size instead of shown.
const SHOWN: u64 = 4 << 20;
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
    let timeline = read.timeline(&root, no, ctx.env)?;
    // As if conflicts were overwritten, so that each difference is shown.
    let plan = decide::restore(
        &root,
        &read.session,
        point,
        Scope::Code,
        timeline,
        &decide::Only::default(),
        OnConflict::Overwrite,
    );
    if ctx.json() {
        let mut out = report::json(&plan, &Stage::Planned, read.format.resume(&read.session));
        out.schema = "rewind.show/1";
        ctx.print_json(&out)?;
        return Ok(Outcome::Done);
    }
    let at = read.session.turn(no).and_then(|t| t.at);
    head(ctx, &plan, at)?;
    let text = preview::paths(&plan, View::Differences, ctx.ui.style());
    if text.is_empty() {
        ctx.print("going back to before it changes no file\n")?;
    } else {
        ctx.print(&format!("going back to before it:\n{text}"))?;
    }
    diffs(ctx, &plan, &root)?;
    if !plan.gaps.is_empty() {
        let gaps = preview::gaps(&plan.gaps, GAPS);
        ctx.print(&format!("\nnot covered, so left as it is:\n{gaps}"))?;
    }
    next(ctx, &plan);
    Ok(Outcome::Done)
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

fn diffs(ctx: &mut Context<'_>, plan: &Plan, root: &Root) -> Result<()> {
    for step in &plan.steps {
        let text = diff_of(step, root, ctx.ui.style());
        if !text.is_empty() {
            ctx.print(&format!("\n{text}"))?;
        }
    }
    Ok(())
}

/// All differences of a plan in one text.
#[must_use]
pub fn diffs_text(plan: &Plan, root: &Root, style: Style) -> String {
    plan.steps.iter().map(|s| diff_of(s, root, style)).collect()
}

/// The difference of one step; a side that cannot be read is named with the reason.
fn diff_of(step: &Step, root: &Root, style: Style) -> String {
    let old = match step.expect.kind {
        FileKind::Absent => Ok(None),
        _ if step.expect.len > SHOWN => Err(format!("{} bytes", step.expect.len)),
        _ => root.read(&step.path).map(Some).map_err(|e| e.to_string()),
    };
    let new = match &step.make {
        Make::Mode(_) => old.clone(),
        Make::File { len, .. } if *len > SHOWN => Err(format!("{len} bytes")),
        make => decide::new_bytes(make, SHOWN).map_err(|e| e.to_string()),
    };
    diff::unified(step.path.as_path(), side(&old), side(&new), style).text
}

fn side(bytes: &std::result::Result<Option<Vec<u8>>, String>) -> Side<'_> {
    match bytes {
        Ok(None) => Side::Absent,
        Ok(Some(b)) => Side::Bytes(b),
        Err(why) => Side::NotShown(why),
    }
}
