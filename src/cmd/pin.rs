//! `rewind pin` and `rewind unpin`: points that are never pruned, and names to type them by.

use super::{Context, Outcome};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::model::point::TurnName;
use crate::ops::gather::Read;
use crate::ops::pins::Pin;
use crate::ui::json::{self, PathOut, SessionOut};
use crate::ui::sanitise;

/// A longer name is no name.
const LONGEST: usize = 100;

/// Runs `pin`.
///
/// # Errors
/// There is no such turn, or the name cannot be one.
pub fn pin(ctx: &mut Context<'_>, args: &cli::Pin) -> Result<Outcome> {
    let read = ctx.read(None)?;
    let turn = read.turn(&args.turn)?;
    if let Some(name) = &args.name {
        fits(&read, name, &turn.key)?;
    }
    let pin = Pin::new(&read.session, turn, args.name.clone(), ctx.env);
    pin.write(ctx.env, ctx.disk)?;
    let as_name = match &pin.name {
        Some(name) => format!(" as `{}`", sanitise(name)),
        None => String::new(),
    };
    tell(ctx, &read, &pin, true)?;
    ctx.ui.say(&format!(
        "turn {} is pinned{as_name}: no prune takes what it needs",
        pin.turn
    ));
    Ok(Outcome::Done)
}

/// Runs `unpin`.
///
/// # Errors
/// There is no such turn, or it is not pinned.
pub fn unpin(ctx: &mut Context<'_>, args: &cli::Unpin) -> Result<Outcome> {
    let read = ctx.read(None)?;
    let id = &read.session.id;
    // A pin outlives its turn: its name is enough to take it away.
    let named = match &args.turn {
        TurnName::Key(name) => read.pins.named(id, name),
        _ => None,
    };
    let pin = if let Some(pin) = named {
        pin.clone()
    } else {
        let turn = read.turn(&args.turn)?;
        let pin = read.pins.of_turn(id, &turn.key).cloned();
        let none = || Error::new(Kind::NotFound, format!("turn {} is not pinned", turn.no));
        pin.ok_or_else(none)?
    };
    pin.undone(ctx.env).write(ctx.env, ctx.disk)?;
    tell(ctx, &read, &pin, false)?;
    ctx.ui
        .say(&format!("turn {} is not pinned any more", pin.turn));
    Ok(Outcome::Done)
}

/// A name must not be taken for a number, an option or an id, and must be seen as it is.
fn fits(read: &Read, name: &str, key: &str) -> Result<()> {
    let wrong = |words: String| Err(Error::new(Kind::Usage, words));
    let plain = sanitise(name) == name && !name.trim().is_empty() && name.len() <= LONGEST;
    if !plain || name.starts_with('-') || !matches!(TurnName::parse(name), TurnName::Key(_)) {
        return wrong(format!("`{}` cannot be the name of a pin", sanitise(name)));
    }
    if read.session.turns.iter().any(|t| t.key.starts_with(name)) {
        return wrong(format!("`{name}` is the start of a turn's id"));
    }
    match read.pins.named(&read.session.id, name) {
        Some(pin) if pin.key != key => {
            wrong(format!("`{name}` is the name of turn {} already", pin.turn))
        }
        _ => Ok(()),
    }
}

fn tell(ctx: &mut Context<'_>, read: &Read, pin: &Pin, pinned: bool) -> Result<()> {
    if !ctx.json() {
        return Ok(());
    }
    let session = &read.session;
    ctx.print_json(&json::Pinned {
        schema: "rewind.pin/1",
        pinned,
        pin: pin.name.clone(),
        session: SessionOut {
            agent: session.agent.to_owned(),
            id: session.id.clone(),
            path: PathOut::new(session.path()),
            workspace: session
                .root
                .as_ref()
                .map(|r| r.to_string_lossy().into_owned()),
        },
        turn: pin.turn,
        turn_id: pin.key.clone(),
    })
}
