//! What to do with a turn: the menu, the preview, the question.

use super::super::restore::{self, Prepared};
use super::super::{Context, fork, no_terminal, patch, preview, report, words};
use super::{Step, tell};
use crate::cli;
use crate::error::Result;
use crate::format::Access;
use crate::model::point::{OnConflict, Scope, TurnName};
use crate::model::session::Turn;
use crate::ops::coverage::Covered;
use crate::ops::gather::Read;
use crate::ui::ask::Answer;
use crate::ui::page::Page;
use crate::ui::text::count;
use crate::ui::{age, sanitise, sanitise_lines};

/// An entry of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Restore(Scope),
    Fork,
    Diff,
    Back,
}

impl Entry {
    fn text(self) -> &'static str {
        match self {
            Self::Restore(Scope::Both) => "Code and conversation",
            Self::Restore(Scope::Conversation) => "Conversation",
            Self::Restore(Scope::Code) => "Code",
            Self::Fork => "Fork from here: a new session that ends before this turn",
            Self::Diff => "Show the diff",
            Self::Back => "Back",
        }
    }
}

/// What can be done with a turn, and why the rest cannot.
struct Menu {
    entries: Vec<Entry>,
    notes: Vec<String>,
}

/// Lets the user choose, until something was done or they go back.
pub(super) fn pick(
    ctx: &mut Context<'_>,
    read: &Read,
    turn: &Turn,
    covered: &Covered,
) -> Result<Step> {
    let menu = menu(ctx, read, turn);
    let title = title(ctx, turn, covered, &menu.notes);
    let texts: Vec<String> = menu.entries.iter().map(|e| e.text().to_owned()).collect();
    loop {
        let entry = match ctx.ask.menu(&title, &texts).map_err(no_terminal)? {
            Answer::This(at) => menu.entries.get(at).copied().unwrap_or(Entry::Back),
            Answer::Back => Entry::Back,
            Answer::Out => return Ok(Step::Out),
        };
        let step = match entry {
            Entry::Back => return Ok(Step::Back),
            Entry::Restore(scope) => restore(ctx, read, turn, scope),
            Entry::Fork => fork(ctx, read, turn),
            Entry::Diff => diff(ctx, read, turn, OnConflict::Fail),
        };
        match step {
            Ok(Step::Back) => {}
            Ok(step) => return Ok(step),
            Err(Failed::Before(e)) => {
                if tell(ctx, &e)? == Answer::Out {
                    return Ok(Step::Out);
                }
            }
            Err(Failed::Doing(e)) => return Err(e),
        }
    }
}

/// An error before anything was begun, after which the user may choose again; or one of what was begun.
enum Failed {
    Before(crate::error::Error),
    Doing(crate::error::Error),
}

fn title(ctx: &Context<'_>, turn: &Turn, covered: &Covered, notes: &[String]) -> String {
    let age = turn
        .at
        .map_or(String::new(), |at| format!(", {}", age(at, ctx.env.now)));
    let first = sanitise(words::first_line(&turn.prompt)).into_owned();
    let files = match covered.files.len() {
        0 => "no edit of a file is recorded in it".to_owned(),
        n => format!("it changed {}", count(n, "file", "files")),
    };
    let mut lines = vec![format!("before turn {}{age}", turn.no), first, files];
    lines.extend(notes.iter().cloned());
    lines.join("\n")
}

/// Only what can be done is offered.
fn menu(ctx: &mut Context<'_>, read: &Read, turn: &Turn) -> Menu {
    let mut notes = Vec::new();
    let code = match prepare(ctx, read, turn, Scope::Code, OnConflict::Fail) {
        Ok(p) => !p.plan.steps.is_empty() || report::left(&p.plan) > 0,
        Err(e) => {
            notes.push(format!("no code: {}", sanitise(&e.message)));
            false
        }
    };
    let talk = match prepare(ctx, read, turn, Scope::Conversation, OnConflict::Fail) {
        Ok(_) => true,
        Err(e) => {
            notes.push(format!("no conversation: {}", sanitise(&e.message)));
            false
        }
    };
    let mut entries = Vec::new();
    let offers = [
        (code && talk, Entry::Restore(Scope::Both)),
        (talk, Entry::Restore(Scope::Conversation)),
        (code, Entry::Restore(Scope::Code)),
        (
            turn.no > 0 && read.format.access() != Access::ReadOnly,
            Entry::Fork,
        ),
        (code, Entry::Diff),
        (true, Entry::Back),
    ];
    entries.extend(offers.into_iter().filter(|(can, _)| *can).map(|(_, e)| e));
    Menu { entries, notes }
}

fn args(turn: &Turn, scope: Scope, on_conflict: OnConflict, copy: bool) -> cli::Restore {
    cli::Restore {
        turn: TurnName::Number(turn.no),
        scope,
        on_conflict,
        dry_run: false,
        yes: true,
        force: false,
        print_prompt: false,
        prompt_out: None,
        copy,
        paths: Vec::new(),
    }
}

fn prepare(
    ctx: &mut Context<'_>,
    read: &Read,
    turn: &Turn,
    scope: Scope,
    on: OnConflict,
) -> Result<Prepared> {
    restore::prepare(ctx, read, &args(turn, scope, on, false))
}

/// Previews and asks, and does it after a yes and after nothing else.
fn restore(
    ctx: &mut Context<'_>,
    read: &Read,
    turn: &Turn,
    scope: Scope,
) -> std::result::Result<Step, Failed> {
    let mut on = OnConflict::Fail;
    loop {
        let prepared = prepare(ctx, read, turn, scope, on).map_err(Failed::Before)?;
        let undecided = on == OnConflict::Fail && !prepared.plan.conflicts.is_empty();
        let page = preview_page(ctx, &prepared, scope, on, undecided);
        let key = match asked(ctx, page)? {
            Answer::Out => return Ok(Step::Out),
            Answer::Back if undecided || on == OnConflict::Fail => return Ok(Step::Back),
            Answer::Back => {
                on = OnConflict::Fail;
                continue;
            }
            Answer::This(key) => key,
        };
        match key {
            'd' => match diff(ctx, read, turn, on)? {
                Step::Back => {}
                step => return Ok(step),
            },
            'k' => on = OnConflict::Keep,
            'o' => on = OnConflict::Overwrite,
            'b' => on = OnConflict::Beside,
            'y' | 'c' => {
                ctx.ask.leave();
                if let Some(warning) = &prepared.warning {
                    ctx.ui.warn(warning);
                }
                let args = args(turn, scope, on, key == 'c');
                let done = restore::finish(ctx, &prepared, &args);
                return done.map(Step::Done).map_err(Failed::Doing);
            }
            _ => {}
        }
    }
}

fn asked(ctx: &mut Context<'_>, page: Page) -> std::result::Result<Answer<char>, Failed> {
    ctx.ask
        .page(page)
        .map_err(|e| Failed::Before(no_terminal(e)))
}

/// The preview with its question. Conflicts are decided first, and the preview that then comes says what that does.
fn preview_page(
    ctx: &Context<'_>,
    prepared: &Prepared,
    scope: Scope,
    on: OnConflict,
    undecided: bool,
) -> Page {
    let plan = &prepared.plan;
    let mut text = vec![preview::headline(plan, preview::Tense::Would)];
    let view = preview::View::Doing(on);
    let counts = patch::counts(plan, &prepared.root);
    let style = ctx.ui.err_style();
    text.push(preview::paths_counted(plan, view, style, &counts));
    if let Some(warning) = &prepared.warning {
        text.push(format!("warning: {}\n", sanitise_lines(warning)));
    }
    if scope.code() && !plan.gaps.is_empty() {
        let gaps = preview::gaps(&plan.gaps, usize::MAX);
        text.push(format!("not covered, so left as it is:\n{gaps}"));
    }
    let key = |k: char, does: &str| (k, does.to_owned());
    if report::nothing(plan) {
        text.push(preview::nothing(plan));
        return Page::new(text.join("\n"), String::new(), Vec::new());
    }
    if undecided {
        let n = count(plan.conflicts.len(), "file", "files");
        let question = format!("{n} changed since the agent wrote: what becomes of the changes?");
        let keys = vec![
            key('k', "keep them"),
            key('o', "overwrite, undo brings them back"),
            key('b', "write the old content beside"),
            key('d', "diff"),
        ];
        return Page::new(text.join("\n"), question, keys);
    }
    let mut keys = vec![key('y', "yes")];
    if scope.conversation() {
        keys.push(key('c', "yes, and copy the prompt"));
    }
    if scope.code() {
        keys.push(key('d', "diff"));
    }
    let question = "Do it? `rewind undo` takes it back.".to_owned();
    Page::new(text.join("\n"), question, keys)
}

/// The differences; of files that changed since too, as long as nothing was said of them.
fn diff(
    ctx: &mut Context<'_>,
    read: &Read,
    turn: &Turn,
    on: OnConflict,
) -> std::result::Result<Step, Failed> {
    let on = match on {
        OnConflict::Fail => OnConflict::Overwrite,
        said => said,
    };
    let shown = prepare(ctx, read, turn, Scope::Code, on).map_err(Failed::Before)?;
    let text = patch::all(&shown.plan, &shown.root, ctx.ui.err_style());
    match asked(ctx, Page::new(text, String::new(), Vec::new()))? {
        Answer::Out => Ok(Step::Out),
        _ => Ok(Step::Back),
    }
}

fn fork(ctx: &mut Context<'_>, read: &Read, turn: &Turn) -> std::result::Result<Step, Failed> {
    let text = format!(
        "would make a new session that ends before turn {}; this one stays as it is\n",
        turn.no
    );
    let keys = vec![('y', "yes".to_owned())];
    match asked(ctx, Page::new(text, "Make it?".to_owned(), keys))? {
        Answer::This(_) => {}
        Answer::Back => return Ok(Step::Back),
        Answer::Out => return Ok(Step::Out),
    }
    ctx.ask.leave();
    let args = cli::Fork {
        turn: TurnName::Number(turn.no),
        name: None,
        dry_run: false,
        yes: true,
    };
    let done = fork::of(ctx, read, &args);
    done.map(Step::Done).map_err(Failed::Doing)
}
