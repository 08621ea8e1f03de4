//! `rewind show`: what going back to before a turn would change, now.

use super::report::{self, Stage};
use super::{Context, Outcome};
use crate::cli;
use crate::error::Result;
use crate::model::point::{OnConflict, Scope};
use crate::ops::plan::{Make, Plan, Step};
use crate::ops::{FileKind, Root, decide};
use crate::ui::diff::{self, Side};
use crate::ui::sanitise_lines;

/// Files larger than this, in bytes, are named with their size instead of shown.
const SHOWN: u64 = 4 << 20;

/// Runs the command.
///
/// # Errors
/// The session or turn cannot be found or read.
pub fn run(ctx: &mut Context<'_>, args: &cli::Show) -> Result<Outcome> {
    let read = ctx.read(None)?;
    let turn = read.turn(&args.turn)?;
    let (no, point) = (turn.no, read.point(turn));
    let root = read.root(ctx.env, ctx.global.workspace.as_deref())?;
    ctx.settle(&root)?;
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
    let prompt = sanitise_lines(&plan.point.prompt).into_owned();
    let key = crate::ui::sanitise(&plan.point.key).into_owned();
    ctx.print(&format!("turn {no}  {key}\n{prompt}\n\n"))?;
    let text = report::text(&plan, ctx.ui.style());
    if text.is_empty() {
        ctx.print("going back there changes no file\n")?;
    } else {
        ctx.print(&format!("going back to before it:\n{text}"))?;
    }
    diffs(ctx, &plan, &root)?;
    if !plan.gaps.is_empty() {
        ctx.print(&format!("\nnot covered:\n{}", report::gaps(&plan)))?;
    }
    Ok(Outcome::Done)
}

fn diffs(ctx: &mut Context<'_>, plan: &Plan, root: &Root) -> Result<()> {
    for step in &plan.steps {
        let text = diff_of(step, root, ctx);
        if !text.is_empty() {
            ctx.print(&format!("\n{text}"))?;
        }
    }
    Ok(())
}

/// The difference of one step; a side that cannot be read is named with the reason.
fn diff_of(step: &Step, root: &Root, ctx: &Context<'_>) -> String {
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
    diff::unified(step.path.as_path(), side(&old), side(&new), ctx.ui.style()).text
}

fn side(bytes: &std::result::Result<Option<Vec<u8>>, String>) -> Side<'_> {
    match bytes {
        Ok(None) => Side::Absent,
        Ok(Some(b)) => Side::Bytes(b),
        Err(why) => Side::NotShown(why),
    }
}
