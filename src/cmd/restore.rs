//! `rewind restore`: takes code, conversation or both back to before a turn. The only way to do so; every front end
//! builds these arguments.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::carry::{Ask, carry_out, may_ask, next_steps};
use super::{Context, Outcome};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::ops::gather::Read;
use crate::ops::plan::Plan;
use crate::ops::{Root, cut, decide, new_file};

/// A restore that was decided and not yet done.
pub struct Prepared {
    /// What it does.
    pub plan: Plan,
    /// The folder that it acts on.
    pub root: Root,
    /// How the agent goes on afterwards.
    pub resume: Option<String>,
    /// What a person should know before they say yes.
    pub warning: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// See the exit codes; what was and was not changed is in the error.
pub fn run(ctx: &mut Context<'_>, args: &cli::Restore) -> Result<Outcome> {
    may_ask(ctx, args.yes || args.dry_run)?;
    let read = ctx.read(None)?;
    let prepared = prepare(ctx, &read, args)?;
    if let Some(warning) = &prepared.warning {
        ctx.ui.warn(warning);
    }
    finish(ctx, &prepared, args)
}

/// Decides what a restore does. Changes nothing, but for what an interrupted run left open.
///
/// # Errors
/// As [`run`].
pub fn prepare(ctx: &mut Context<'_>, read: &Read, args: &cli::Restore) -> Result<Prepared> {
    let root = read.root_to_change(ctx.env, ctx.global.workspace.as_deref())?;
    ctx.settle(&root)?;
    free(ctx, args)?;
    let turn = read.turn(&args.turn)?;
    let (no, point) = (turn.no, read.point(turn));
    let only = only(ctx, &root, &args.paths)?;
    if !only.everything() && args.scope.conversation() {
        return Err(Error::new(
            Kind::Usage,
            "a conversation cannot go back for some paths only",
        )
        .hint("`--scope code -- PATH…` takes back files"));
    }
    let warning = alive(ctx, read, args)?;
    let timeline = if args.scope.code() {
        read.timeline(&root, no, ctx.env)?
    } else {
        crate::ops::timeline::Timeline::default()
    };
    let mut plan = decide::restore(
        &root,
        &read.session,
        point,
        args.scope,
        timeline,
        &only,
        args.on_conflict,
    );
    found(ctx, &plan, &args.paths)?;
    if args.scope.conversation() {
        plan.session = cut::steps(read.format.cut(&read.session, no, ctx.env)?)?;
    }
    let resume = args
        .scope
        .conversation()
        .then(|| read.format.resume(&read.session))
        .flatten();
    Ok(Prepared {
        plan,
        root,
        resume,
        warning,
    })
}

/// Previews, asks, applies, reports, as the arguments say.
///
/// # Errors
/// As [`run`].
pub fn finish(ctx: &mut Context<'_>, prepared: &Prepared, args: &cli::Restore) -> Result<Outcome> {
    let Prepared { plan, root, .. } = prepared;
    let ask = Ask {
        yes: args.yes,
        dry_run: args.dry_run,
        on_conflict: args.on_conflict,
        print_prompt: args.print_prompt,
    };
    let outcome = carry_out(ctx, plan, root, ask, prepared.resume.clone())?;
    if args.dry_run {
        return Ok(outcome);
    }
    if args.scope.conversation() {
        hand_back(ctx, plan, args)?;
    }
    next_steps(ctx, plan, prepared.resume.clone());
    Ok(outcome)
}

/// The files that were asked for.
///
/// # Errors
/// A glob that cannot be read, or a path outside.
pub fn only(ctx: &Context<'_>, root: &Root, paths: &[PathBuf]) -> Result<decide::Only> {
    let paths = paths.iter().map(|p| p.clone().into_os_string());
    decide::Only::new(root.path(), &ctx.env.cwd, &paths.collect::<Vec<_>>())
}

/// Paths that were named and are in no record are a slip of the hand rather than nothing to do.
///
/// # Errors
/// [`Kind::NotFound`] then.
pub fn found(ctx: &Context<'_>, plan: &Plan, paths: &[PathBuf]) -> Result<()> {
    let named = plan.steps.len() + plan.equal.len() + plan.conflicts.len() + plan.missing.len();
    if paths.is_empty() || named > 0 {
        return Ok(());
    }
    let show = format!("show {}", plan.point.turn);
    let show = ctx.command(&show, ctx.global.session.as_deref());
    let mut error = Error::new(
        Kind::NotFound,
        format!(
            "no edit of such a file is recorded from turn {} on",
            plan.point.turn
        ),
    )
    .hint(format!("`{show}` lists the files that are"));
    for path in paths {
        error = error.path(path, "");
    }
    Err(error)
}

/// A live agent would write its own idea of the conversation over ours. Files are another matter: people restore them
/// while the agent waits.
fn alive(ctx: &Context<'_>, read: &Read, args: &cli::Restore) -> Result<Option<String>> {
    let Some(alive) = read.format.live(&read.session, ctx.env) else {
        return Ok(None);
    };
    let title = read.format.title();
    let mut warning = format!("{title} is at work on this session: {}", alive.sign);
    if !args.scope.conversation() {
        warning.push_str("; it may write the files again");
        return Ok(Some(warning));
    }
    if args.force {
        return Ok(Some(warning));
    }
    let pid = alive
        .pid
        .map_or(String::new(), |p| format!(" (process {p})"));
    Err(Error::new(
        Kind::Busy,
        format!("{title} is at work on this session{pid}: {}", alive.sign),
    )
    .hint("leave the session in the agent, then try again; `--scope code` works while it runs")
    .hint("`--force` cuts the conversation all the same"))
}

/// Hands the prompt back for editing.
fn hand_back(ctx: &mut Context<'_>, plan: &Plan, args: &cli::Restore) -> Result<()> {
    let prompt = &plan.point.prompt;
    if let Some(path) = &args.prompt_out {
        let path = ctx.env.cwd.join(path);
        write_new(&path, prompt).map_err(|e| {
            Error::io("the prompt could not be written", path, e)
                .changed("the rewind was done; only the prompt's file is missing")
                .hint("`rewind undo` takes the rewind back; `rewind log --json` has the prompt")
        })?;
    }
    if args.copy {
        ctx.ui.copy(prompt);
    }
    if args.print_prompt {
        ctx.print(&format!("{prompt}\n"))?;
    } else if !ctx.json() && args.prompt_out.is_none() {
        let shown = crate::ui::sanitise_lines(prompt);
        ctx.print(&format!(
            "the prompt of turn {}:\n{shown}\n",
            plan.point.turn
        ))?;
    }
    Ok(())
}

/// Whether the prompt's file can be made, asked before anything is done.
fn free(ctx: &Context<'_>, args: &cli::Restore) -> Result<()> {
    let Some(path) = args.prompt_out.as_ref().map(|p| ctx.env.cwd.join(p)) else {
        return Ok(());
    };
    if std::fs::symlink_metadata(&path).is_ok() {
        return Err(
            Error::new(Kind::Usage, "the file for the prompt is there already")
                .path(path, "left alone")
                .hint("name a new one with `--prompt-out`"),
        );
    }
    Ok(())
}

/// A file that is there already is the user's.
fn write_new(path: &Path, prompt: &str) -> std::io::Result<()> {
    new_file(path)?.write_all(prompt.as_bytes())
}
