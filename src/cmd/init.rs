//! `rewind init` and `rewind deinit`: our hooks in an agent's settings. What changes is shown; `deinit` gives the bytes
//! back that were there.

use super::{Context, Outcome};
use crate::cli;
use crate::error::Result;
use crate::ops::init::{self, Mode, Plan, Whose};
use crate::ui::diff::{Side, unified};
use crate::ui::json::{self, PathOut};
use crate::ui::path_text;

/// Adds the hooks.
///
/// # Errors
/// The agent has no hooks, or its settings cannot be read, parsed or written; they are as they were.
pub fn init(ctx: &mut Context<'_>, args: &cli::Init) -> Result<Outcome> {
    let mode = if args.git { Mode::Git } else { Mode::Files };
    let plan = init::add(&args.agent, &whose(ctx, args), mode, ctx.env)?;
    carry_out(ctx, args, &plan, Way::In)
}

/// Takes the hooks out.
///
/// # Errors
/// As [`init()`].
pub fn deinit(ctx: &mut Context<'_>, args: &cli::Init) -> Result<Outcome> {
    let plan = init::take_out(&args.agent, &whose(ctx, args), ctx.env)?;
    carry_out(ctx, args, &plan, Way::Out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

fn whose(ctx: &Context<'_>, args: &cli::Init) -> Whose {
    if !args.project {
        return Whose::User;
    }
    let folder = ctx.global.workspace.as_ref();
    Whose::Project(folder.map_or_else(|| ctx.env.cwd.clone(), |w| ctx.env.cwd.join(w)))
}

fn carry_out(ctx: &mut Context<'_>, args: &cli::Init, plan: &Plan, way: Way) -> Result<Outcome> {
    let status = match (plan.is_done(), args.dry_run) {
        (true, _) => "unchanged",
        (_, true) => "planned",
        _ => {
            init::apply(plan, ctx.env, ctx.disk)?;
            "done"
        }
    };
    if ctx.json() {
        let out = json::Init {
            schema: match way {
                Way::In => "rewind.init/1",
                Way::Out => "rewind.deinit/1",
            },
            status,
            agent: args.agent.clone(),
            path: PathOut::new(&plan.path),
            events: plan.events.clone(),
            then: plan.then,
        };
        ctx.print_json(&out)?;
        return Ok(Outcome::Done);
    }
    if status != "unchanged" {
        fn side(bytes: Option<&Vec<u8>>) -> Side<'_> {
            bytes.map_or(Side::Absent, |b| Side::Bytes(b))
        }
        let (before, after) = (side(plan.before.as_ref()), side(plan.after.as_ref()));
        let text = unified(&plan.path, before, after, ctx.ui.style()).text;
        ctx.print(&text)?;
    }
    tell(ctx, args, plan, (status, way));
    Ok(Outcome::Done)
}

fn tell(ctx: &mut Context<'_>, args: &cli::Init, plan: &Plan, (status, way): (&str, Way)) {
    let (path, agent) = (path_text(&plan.path), &args.agent);
    let words = match (status, way) {
        ("unchanged", Way::In) => format!("the hooks are in {path} already"),
        ("unchanged", Way::Out) => format!("no hooks of ours are in {path}"),
        ("planned", Way::In) => format!("would add the hooks to {path}"),
        ("planned", Way::Out) => format!("would take the hooks out of {path}"),
        (_, Way::In) => format!("added the hooks to {path}"),
        (_, Way::Out) => format!("took the hooks out of {path}"),
    };
    ctx.ui.say(&words);
    if way == Way::In {
        if let Some(then) = plan.then {
            ctx.ui.say(then);
        }
        if status == "done" {
            let project = if args.project { " --project" } else { "" };
            ctx.ui.hint(&format!(
                "`rewind deinit {agent}{project}` takes them out again"
            ));
        }
    }
}
