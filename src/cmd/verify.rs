//! `rewind verify`: whether everything that is kept is whole, and what each damage costs.

use std::fmt::Write as _;

use super::prune::journals;
use super::{Context, Outcome};
use crate::cli;
use crate::error::{Kind, Result};
use crate::ops::discover;
use crate::ops::prune::find;
use crate::ops::verify::{self, Damage, Verified};
use crate::ui::json::{self, PathOut};
use crate::ui::path_text;
use crate::ui::text::count;

/// Runs the command.
///
/// # Errors
/// What is derived cannot be written anew. Damages are no error: they are what was asked for.
pub fn run(ctx: &mut Context<'_>, args: &cli::Verify) -> Result<Outcome> {
    let progress = ctx.ui.progress("reading everything", None);
    let stores = match (&ctx.global.session, args.all) {
        (Some(name), _) => {
            find::of_sessions(vec![discover::pick(ctx.env, Some(name), None)?], ctx.env)
        }
        (None, true) => {
            let all = discover::all(ctx.env, None);
            let mut stores = find::of_sessions(all.clone(), ctx.env);
            stores.extend(find::orphans(&all, ctx.env));
            stores
        }
        (None, false) => {
            let found = match &ctx.global.workspace {
                Some(folder) => discover::of_workspace(ctx.env, &ctx.env.cwd.join(folder), None),
                None => discover::here(ctx.env, None),
            };
            find::of_sessions(found, ctx.env)
        }
    };
    let journals = journals(ctx, args.all)?;
    let found = verify::look(&stores, &journals, args.repair.then_some(ctx.disk))?;
    drop(progress);
    if ctx.json() {
        ctx.print_json(&out(&found))?;
    } else {
        let text: String = found.damages.iter().map(damage).collect();
        ctx.print(&text)?;
        tell(ctx, &found);
    }
    Ok(if found.damages.is_empty() {
        Outcome::Done
    } else {
        Outcome::Ended(Kind::Damaged)
    })
}

fn damage(bad: &Damage) -> String {
    let mut text = format!(
        "{}: {}\n",
        path_text(&bad.path),
        crate::ui::sanitise(&bad.reason)
    );
    // Writing to a string cannot fail.
    if !bad.needed_by.is_empty() {
        let who = bad.needed_by.join(", ");
        let _ = writeln!(text, "  needed by {}", crate::ui::sanitise(&who));
    }
    for file in &bad.files {
        let _ = writeln!(text, "  cannot go back there: {}", path_text(file));
    }
    text
}

fn tell(ctx: &mut Context<'_>, found: &Verified) {
    for path in &found.repaired {
        ctx.ui.say(&format!("written anew: {}", path_text(path)));
    }
    let what = format!(
        "{} in {}, {} and {}",
        count(found.checkpoints, "checkpoint", "checkpoints"),
        count(found.stores, "sidecar", "sidecars"),
        count(found.contents, "content", "contents"),
        count(found.operations, "operation", "operations"),
    );
    match found.damages.len() {
        0 => ctx.ui.say(&format!("all is whole: {what}")),
        n => ctx
            .ui
            .warn(&format!("{} among {what}", count(n, "damage", "damages"))),
    }
    if found.unused > 0 {
        let n = count(found.unused, "content is", "contents are");
        ctx.ui.say(&format!(
            "{n} named by nothing; a prune of that session removes them"
        ));
    }
}

fn out(found: &Verified) -> json::Verified {
    json::Verified {
        schema: "rewind.verify/1",
        status: if found.damages.is_empty() {
            "whole"
        } else {
            "damaged"
        },
        stores: found.stores,
        checkpoints: found.checkpoints,
        contents: found.contents,
        operations: found.operations,
        unused: found.unused,
        repaired: found.repaired.iter().map(|p| PathOut::new(p)).collect(),
        damages: found
            .damages
            .iter()
            .map(|d| json::DamageOut {
                path: PathOut::new(&d.path),
                reason: d.reason.clone(),
                needed_by: d.needed_by.clone(),
                files: d
                    .files
                    .iter()
                    .map(|f| f.to_string_lossy().into_owned())
                    .collect(),
            })
            .collect(),
    }
}
