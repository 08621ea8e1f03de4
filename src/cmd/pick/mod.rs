//! `rewind` alone: session → turn → what goes back → preview → confirm → report. It only asks, and then builds the
//! arguments of `restore` or `fork`; what they do is theirs. Nothing is done by pressing Enter again and again.

mod act;
mod sessions;
mod turns;

use super::{Context, Outcome, no_terminal};
use crate::error::{Error, Kind, Result};
use crate::ops::discover::{self, Found};
use crate::ui::ask::Answer;
use crate::ui::page::Page;

/// How a part of the way ended.
enum Step {
    /// The user wants the part before.
    Back,
    /// The user wants out.
    Out,
    /// Something was done.
    Done(Outcome),
}

/// Runs the picker.
///
/// # Errors
/// [`Kind::Usage`] without a terminal, [`Kind::NotFound`] without a session, or what `restore` and `fork` say.
pub fn run(ctx: &mut Context<'_>) -> Result<Outcome> {
    can_ask(ctx)?;
    ctx.settle_here()?;
    let step = pick(ctx);
    ctx.ask.leave();
    match step? {
        Step::Done(outcome) => Ok(outcome),
        Step::Back | Step::Out => {
            ctx.ui.say("nothing was changed");
            Ok(Outcome::Left)
        }
    }
}

/// # Errors
/// [`Kind::Usage`] where nobody can be asked, or not on a screen.
fn can_ask(ctx: &Context<'_>) -> Result<()> {
    let why = if ctx.json() {
        "`rewind` alone asks a person, which `--json` cannot"
    } else if !ctx.env.interactive {
        "`rewind` alone asks on a terminal, and there is none"
    } else if ctx.env.var("TERM").is_some_and(|t| t == "dumb") {
        "`rewind` alone needs a terminal that can move its cursor, and this one is `dumb`"
    } else {
        return Ok(());
    };
    Err(Error::new(Kind::Usage, why)
        .hint("`rewind list` shows the turns, `rewind restore TURN --scope both` goes back")
        .hint("`rewind --help` tells what there is"))
}

fn pick(ctx: &mut Context<'_>) -> Result<Step> {
    if ctx.global.session.is_some() {
        let read = ctx.read(None)?;
        return turns::pick(ctx, &read);
    }
    let found = match &ctx.global.workspace {
        Some(folder) => discover::of_workspace(ctx.env, &ctx.env.cwd.join(folder), None),
        None => discover::here(ctx.env, None),
    };
    if found.is_empty() {
        return Err(discover::none(ctx.env, ctx.global.workspace.as_deref()));
    }
    if let [one] = found.as_slice() {
        return of(ctx, one);
    }
    let mut rows = sessions::SessionRows::new(found, ctx);
    let mut at = 0;
    loop {
        let title = format!("sessions of {}", rows.folder());
        match ctx.ask.choose(&title, &mut rows, at).map_err(no_terminal)? {
            Answer::Back | Answer::Out => return Ok(Step::Out),
            Answer::This(chosen) => at = chosen,
        }
        let Some(found) = rows.found(at).cloned() else {
            continue;
        };
        match of(ctx, &found) {
            Ok(Step::Back) => {}
            Ok(step) => return Ok(step),
            // One that cannot be read is no reason not to look at another.
            Err(e) => {
                if tell(ctx, &e)? == Answer::Out {
                    return Ok(Step::Out);
                }
            }
        }
    }
}

fn of(ctx: &mut Context<'_>, found: &Found) -> Result<Step> {
    let read = ctx.read_found(found)?;
    turns::pick(ctx, &read)
}

/// Shows an error, on the screen where things are picked.
fn tell(ctx: &mut Context<'_>, error: &Error) -> Result<Answer<char>> {
    let text = crate::ui::error_text(error, ctx.ui.err_style());
    let page = Page::new(text, String::new(), Vec::new());
    ctx.ask.page(page).map_err(no_terminal)
}
