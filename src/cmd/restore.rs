//! `rewind restore`: takes code, conversation or both back to before a turn. The only way to do so; every front end
//! builds these arguments.

use std::io::Write;
use std::path::Path;

use super::report::{self, Stage};
use super::{Context, Outcome, words};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::model::point::OnConflict;
use crate::ops::gather::Read;
use crate::ops::plan::{Act, Plan};
use crate::ops::{Root, cut, decide, new_file};
use crate::ui::ask;

/// Runs the command.
///
/// # Errors
/// See the exit codes; what was and was not changed is in the error.
pub fn run(ctx: &mut Context<'_>, args: &cli::Restore) -> Result<Outcome> {
    may_ask(ctx, args.yes || args.dry_run)?;
    let read = ctx.read(None)?;
    let root = read.root_to_change(ctx.env, ctx.global.workspace.as_deref())?;
    ctx.settle(&root)?;
    free(ctx, args)?;
    let turn = read.turn(&args.turn)?;
    let (no, point) = (turn.no, read.point(turn));
    let paths: Vec<_> = args
        .paths
        .iter()
        .map(|p| p.clone().into_os_string())
        .collect();
    let only = decide::Only::new(root.path(), &ctx.env.cwd, &paths)?;
    if !only.everything() && args.scope.conversation() {
        return Err(Error::new(
            Kind::Usage,
            "a conversation cannot go back for some paths only",
        )
        .hint("`--scope code -- PATH…` takes back files"));
    }
    alive(ctx, &read, args)?;
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
    if args.scope.conversation() {
        plan.session = cut::steps(read.format.cut(&read.session, no, ctx.env)?)?;
    }
    let resume = args
        .scope
        .conversation()
        .then(|| read.format.resume(&read.session))
        .flatten();
    let ask = Ask {
        yes: args.yes,
        dry_run: args.dry_run,
        on_conflict: args.on_conflict,
        print_prompt: args.print_prompt,
    };
    let outcome = carry_out(ctx, &plan, &root, &ask, resume)?;
    if args.scope.conversation() && !args.dry_run {
        hand_back(ctx, &plan, args)?;
    }
    Ok(outcome)
}

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
    Err(Error::new(
        Kind::Usage,
        "there is no terminal to ask for a confirmation",
    )
    .hint("add `--yes` to do it, or `--dry-run` to see what would be done"))
}

/// A live agent would write its own idea of the conversation over ours. Files are another matter: people restore them
/// while the agent waits.
fn alive(ctx: &mut Context<'_>, read: &Read, args: &cli::Restore) -> Result<()> {
    let Some(alive) = read.format.live(&read.session, ctx.env) else {
        return Ok(());
    };
    let title = read.format.title();
    if !args.scope.conversation() {
        ctx.ui.warn(&format!(
            "{title} is at work on this session: {}; it may write the files again",
            alive.sign
        ));
        return Ok(());
    }
    if args.force {
        ctx.ui.warn(&format!(
            "{title} is at work on this session: {}",
            alive.sign
        ));
        return Ok(());
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

/// Previews, asks, applies, reports: the same for restore, undo and redo.
///
/// # Errors
/// Conflicts, a no, or what `ops::apply` says.
pub fn carry_out(
    ctx: &mut Context<'_>,
    plan: &Plan,
    root: &Root,
    ask: &Ask,
    resume: Option<String>,
) -> Result<Outcome> {
    let text = ctx.json() || ask.print_prompt;
    if ask.dry_run {
        if ctx.json() {
            ctx.print_json(&report::json(plan, &Stage::Planned, resume))?;
        } else {
            preview(ctx, plan)?;
        }
        return Ok(Outcome::Done);
    }
    refuse_conflicts(plan, ask.on_conflict)?;
    if report::nothing(plan) {
        return unchanged(ctx, plan, resume, text);
    }
    if !ask.yes {
        preview(ctx, plan)?;
        // What is asked about must be on the screen before the question.
        crate::ui::quiet_pipe(ctx.ui.finish()).map_err(super::stdout)?;
        if !ask::yes("Do it?") {
            return Err(Error::new(Kind::Failed, "not confirmed"));
        }
    }
    let done = ctx.apply(plan, root)?;
    if ctx.json() {
        ctx.print_json(&report::json(plan, &Stage::Done(done), resume))?;
    } else {
        if !ask.print_prompt && ask.yes {
            let text = report::text(plan, ctx.ui.style());
            ctx.print(&text)?;
        }
        ctx.ui.say(&format!("took {}", report::headline(plan)));
        tell_gaps(ctx, plan);
        if let Some(resume) = resume {
            ctx.ui.hint(&format!("go on with `{resume}`"));
        }
        ctx.ui.hint(match plan.act {
            Act::Restore | Act::Redo(_) => "`rewind undo` takes this back",
            Act::Undo(_) => "`rewind redo` does it again",
        });
    }
    Ok(outcome(plan))
}

fn outcome(plan: &Plan) -> Outcome {
    if report::partial(plan) {
        Outcome::Partial
    } else {
        Outcome::Done
    }
}

fn unchanged(
    ctx: &mut Context<'_>,
    plan: &Plan,
    resume: Option<String>,
    quiet: bool,
) -> Result<Outcome> {
    if ctx.json() {
        ctx.print_json(&report::json(plan, &Stage::Done(String::new()), resume))?;
    } else {
        if !quiet {
            let text = report::text(plan, ctx.ui.style());
            ctx.print(&text)?;
        }
        ctx.ui
            .say("nothing to do: all is as it should be, as far as it is known");
        tell_gaps(ctx, plan);
    }
    Ok(outcome(plan))
}

fn preview(ctx: &mut Context<'_>, plan: &Plan) -> Result<()> {
    let head = format!("would take {}\n", report::headline(plan));
    let text = report::text(plan, ctx.ui.style());
    ctx.print(&(head + &text))?;
    tell_gaps(ctx, plan);
    Ok(())
}

fn tell_gaps(ctx: &mut Context<'_>, plan: &Plan) {
    if !plan.scope.code() || plan.gaps.is_empty() {
        return;
    }
    ctx.ui.say("not covered, so as it is:");
    ctx.ui.say(report::gaps(plan).trim_end());
}

/// # Errors
/// [`Kind::Conflict`] when anybody changed a file since and nothing was said of what to do then.
fn refuse_conflicts(plan: &Plan, on_conflict: OnConflict) -> Result<()> {
    if plan.conflicts.is_empty() || on_conflict != OnConflict::Fail {
        return Ok(());
    }
    let n = plan.conflicts.len();
    let mut error = Error::new(
        Kind::Conflict,
        format!(
            "turn {} cannot be gone back to: {} changed since the agent wrote {}",
            plan.point.turn,
            crate::ui::text::count(n, "file", "files"),
            if n == 1 { "it" } else { "them" },
        ),
    )
    .hint("`--on-conflict keep` leaves them and does the rest, `overwrite` replaces them (undo brings them back), `beside` writes the old content to `<name>.rewind`")
    .hint(format!("`rewind show {}` shows the differences", plan.point.turn));
    for c in &plan.conflicts {
        error = error.path(c.path.as_path(), words::conflict(c.why));
    }
    Err(error)
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
