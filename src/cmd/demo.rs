//! `rewind demo`: a workspace and a session to play with. Prints the lines that lead there, for `eval` or for copying.

use std::path::Path;

use super::{Context, Outcome, words};
use crate::error::Result;
use crate::ops::demo;
use crate::ui::json;
use crate::ui::path_text;

/// Runs the command.
///
/// # Errors
/// The temporary folder cannot be written.
pub fn run(ctx: &mut Context<'_>) -> Result<Outcome> {
    let demo = demo::make(ctx.env, ctx.disk)?;
    let text = |p: &Path| p.to_string_lossy().into_owned();
    if ctx.json() {
        ctx.print_json(&json::Demo {
            schema: "rewind.demo/1",
            folder: text(&demo.folder),
            workspace: text(&demo.shop),
            claude_config_dir: text(&demo.claude),
            rewind_state_dir: text(&demo.state),
        })?;
        return Ok(Outcome::Done);
    }
    let word = |p: &Path| words::shell_word(&text(p));
    ctx.ui.say(&format!(
        "made a small shop and a session of four turns in {}",
        path_text(&demo.folder)
    ));
    ctx.print(&format!(
        "cd {}\nexport CLAUDE_CONFIG_DIR={} REWIND_STATE_DIR={}\n",
        word(&demo.shop),
        word(&demo.claude),
        word(&demo.state)
    ))?;
    ctx.ui
        .hint("type these two lines, or begin with `eval \"$(rewind demo)\"`; then `rewind`");
    ctx.ui.hint(&format!(
        "nothing else was touched: `rm -r {}` removes it",
        word(&demo.folder)
    ));
    Ok(Outcome::Done)
}
