//! `rewind man`: the manual pages of this program, one of itself and one a command. They say what `--help` says, from the
//! same words in `cli`, as `man` shows it; so a page cannot tell of an option that is not there.
//! Does not cover the pages of section 5, which are written by hand.

mod page;
mod prose;

use clap::{Command, CommandFactory};

use super::{Context, Outcome};
use crate::cli::{self, Cli};
use crate::error::Result;
use crate::ops::pages::{self, Page};
use crate::ui::json::{self, PageOut, PathOut};
use crate::ui::path_text;
use crate::ui::text::count;

/// Runs the command.
///
/// # Errors
/// The folder is not there, holds a file of that name that is no page of ours, or cannot be written to.
pub fn run(ctx: &mut Context<'_>, args: &cli::Man) -> Result<Outcome> {
    let mut all = all();
    let folder = args.out.as_ref().map(|out| ctx.env.cwd.join(out));
    match &folder {
        Some(folder) => pages::write(folder, &all, ctx.disk)?,
        None => all.truncate(1),
    }
    if ctx.json() {
        let row = |page: &Page| PageOut {
            name: page.name.clone(),
            text: page.text.clone(),
        };
        ctx.print_json(&json::Man {
            schema: "rewind.man/1",
            folder: folder.as_deref().map(PathOut::new),
            pages: all.iter().map(row).collect(),
        })?;
    } else if let Some(folder) = &folder {
        let n = count(all.len(), "page is", "pages are");
        ctx.ui.say(&format!("{n} in {}", path_text(folder)));
    } else if let Some(page) = all.first() {
        ctx.print(&page.text)?;
    }
    Ok(Outcome::Done)
}

/// All pages, that of the program itself first.
#[must_use]
pub fn all() -> Vec<Page> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let shown = |c: &&Command| !c.is_hide_set();
    let commands = root.get_subcommands().filter(shown);
    std::iter::once(page::of(&root, None))
        .chain(commands.map(|command| page::of(&root, Some(command))))
        .collect()
}
