//! One page in section 1. What is in it comes from the command's own help: the first line is the name, the text behind
//! `Example:` its own section, the table at the end the exit codes. Only the variables and the files are written here.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use roff::{Inline, Roff, bold, italic, roman};

use super::prose::{fill, literal, paragraphs};
use crate::ops::pages::Page;

/// The first line of each page, by which it is known again.
const MARK: &str = r#".\" Made by "rewind man" from the help of the program: change that."#;
/// The day of the pages. `man` wants one, and that of today would make each build another.
const DAY: &str = "2026-12-01";

const VARIABLES: &[(&str, &str)] = &[
    (
        "REWIND_STATE_DIR",
        "Folder for the journal and the replaced bytes, an absolute path; without it `rewind` in the user's state folder.",
    ),
    (
        "REWIND_CONFIG_DIR",
        "Folder for the settings, an absolute path; without it `rewind` in the user's config folder.",
    ),
    (
        "NO_COLOR, CLICOLOR_FORCE, TERM",
        "Whether colour is used, where `--color` does not say it.",
    ),
    ("COLUMNS", "Width that tables are fitted to."),
    (
        "COMPLETE",
        "Set by the scripts of `rewind completions` while they ask for what can be typed next.",
    ),
    (
        "HOME, XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME",
        "Where the folders of the user are.",
    ),
    (
        "CLAUDE_CONFIG_DIR, CODEX_HOME and others",
        "The agents' own variables are followed where they move their sessions.",
    ),
];

const FILES: &[(&str, &str)] = &[
    (
        "~/.config/rewind/config.toml",
        "Settings of what is captured; `rewind doctor` shows what is in force.",
    ),
    (
        "~/.config/rewind/agents/NAME.toml",
        "Agents that were described; see rewind-formats(5).",
    ),
    (
        "~/.local/state/rewind",
        "The journal and the bytes that rewinds replaced, one folder a workspace.",
    ),
    (
        "SESSION.ckpt/",
        "What hooks captured, beside the session's file.",
    ),
];

/// The page of a command, or of the program itself.
pub(super) fn of(root: &Command, command: Option<&Command>) -> Page {
    let of = command.unwrap_or(root);
    let name = title(root, command);
    let mut roff = Roff::new();
    let version = root.get_version().unwrap_or_default();
    let source = format!("{} {version}", root.get_name());
    let head = [
        &name.to_uppercase(),
        "1",
        DAY,
        &source,
        "General Commands Manual",
    ];
    roff.control("TH", head);
    let about = of.get_about().map(ToString::to_string).unwrap_or_default();
    roff.control("SH", ["NAME"]);
    fill(&mut roff, &format!("{name} - {}", lower(&about)));
    roff.control("SH", ["SYNOPSIS"]);
    synopsis(&mut roff, of);
    let (words, examples) = parts(of);
    roff.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut roff, &words, "PP");
    if command.is_none() {
        roff.control("SH", ["COMMANDS"]);
        commands(&mut roff, root);
    }
    roff.control("SH", ["OPTIONS"]);
    options(&mut roff, of);
    closing(&mut roff, of);
    if command.is_none() {
        for (heading, entries) in [("ENVIRONMENT", VARIABLES), ("FILES", FILES)] {
            roff.control("SH", [heading]);
            for (tag, words) in entries {
                roff.control("TP", []).text([bold(*tag)]);
                fill(&mut roff, words);
            }
        }
    }
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        let lines: Vec<&str> = examples.lines().collect();
        literal(&mut roff, &lines);
    }
    roff.control("SH", ["SEE ALSO"]);
    see_also(&mut roff, root, command);
    Page {
        name: format!("{name}.1"),
        text: format!("{MARK}\n{}", roff.render()),
    }
}

fn title(root: &Command, command: Option<&Command>) -> String {
    match command {
        Some(command) => format!("{}-{}", root.get_name(), command.get_name()),
        None => root.get_name().to_owned(),
    }
}

/// The line of a name goes on from the name, so it begins small; a word in capitals stays.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// What the long help says before its examples, the first line as a sentence; and the examples.
fn parts(command: &Command) -> (String, String) {
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let long = command.get_long_about().map(ToString::to_string);
    let long = long.unwrap_or_else(|| about.clone());
    let (words, examples) = long.split_once("Example:\n").unwrap_or((&long, ""));
    let rest = words.strip_prefix(&about).unwrap_or(words);
    let words = format!("{}{}", sentence(&about), rest.trim_end());
    (words, examples.to_owned())
}

/// How the command is typed: its own options, then what all commands take in one word.
fn synopsis(roff: &mut Roff, command: &Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    // Without this the words of a line are pulled apart up to the margin.
    roff.control("ad", ["l"]);
    roff.text([bold(name)]);
    let own = |a: &&Arg| !a.is_hide_set() && !a.is_global_set() && !is_help(a);
    let (words, flags): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(own)
        .partition(|a| a.is_positional());
    let (last, words): (Vec<&Arg>, Vec<&Arg>) = words.into_iter().partition(|a| a.is_last_set());
    let needed = |a: &&&Arg| a.is_required_set();
    for arg in flags.iter().filter(needed) {
        roff.text(typed(arg));
    }
    for arg in flags.iter().filter(|a| !a.is_required_set()) {
        roff.text(optional(typed(arg)));
    }
    // Dots at the end of a line would end a sentence.
    roff.text(optional(vec![italic("options")]));
    if command.has_subcommands() {
        let value = vec![
            italic("command"),
            roman(" ["),
            italic("arguments"),
            roman("]"),
        ];
        let needed = command.is_subcommand_required_set();
        roff.text(if needed { value } else { optional(value) });
    }
    for arg in words {
        let value = vec![italic(value_name(arg))];
        roff.text(if arg.is_required_set() {
            value
        } else {
            optional(value)
        });
    }
    for arg in last {
        let value = vec![
            bold("--"),
            roman(" "),
            italic(value_name(arg)),
            roman(" ..."),
        ];
        roff.text(optional(value));
    }
    roff.control("ad", ["b"]);
}

fn optional(mut inner: Vec<Inline>) -> Vec<Inline> {
    inner.insert(0, roman("["));
    inner.push(roman("]"));
    inner
}

/// An option as it is typed, by its shortest name.
fn typed(arg: &Arg) -> Vec<Inline> {
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long.unwrap_or_default()),
    };
    let mut words = vec![bold(name)];
    words.extend(value(arg));
    words
}

/// The value behind an option.
fn value(arg: &Arg) -> Vec<Inline> {
    if !takes_value(arg) {
        return Vec::new();
    }
    let least = arg.get_num_args().map_or(1, |n| n.min_values());
    let name = italic(value_name(arg));
    match (least, arg.is_require_equals_set()) {
        (0, true) => vec![roman("["), bold("="), name, roman("]")],
        (0, false) => vec![roman(" ["), name, roman("]")],
        (_, true) => vec![bold("="), name],
        (_, false) => vec![roman(" "), name],
    }
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn value_name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    match names.first() {
        Some(name) => name.to_string(),
        None => arg.get_id().as_str().to_uppercase(),
    }
}

fn is_help(arg: &Arg) -> bool {
    matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    )
}

fn commands(roff: &mut Roff, root: &Command) {
    for command in root.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = title(root, Some(command));
        roff.control("TP", []);
        roff.text([bold(name), roman("(1)")]);
        let about = command.get_about().map(ToString::to_string);
        fill(roff, &sentence(&about.unwrap_or_default()));
    }
}

/// The arguments and options, in the order of the help; under each heading of it those that stand there.
fn options(roff: &mut Roff, command: &Command) {
    let shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|a| !a.is_hide_set())
        .collect();
    let mut headings: Vec<Option<&str>> = vec![None];
    for arg in &shown {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        if let Some(words) = heading {
            roff.control("SS", [words]);
        }
        let here = shown.iter().filter(|a| a.get_help_heading() == heading);
        let (words, flags): (Vec<&Arg>, Vec<&Arg>) = here.partition(|a| a.is_positional());
        for arg in words.into_iter().chain(flags) {
            option(roff, arg);
        }
    }
}

fn option(roff: &mut Roff, arg: &Arg) {
    let mut tag = Vec::new();
    if arg.is_positional() {
        tag.push(italic(value_name(arg)));
    }
    let short = arg.get_short().map(|s| bold(format!("-{s}")));
    let long = arg.get_long().map(|l| bold(format!("--{l}")));
    for name in [short, long].into_iter().flatten() {
        if !tag.is_empty() {
            tag.push(roman(", "));
        }
        tag.push(name);
    }
    if !arg.is_positional() {
        tag.extend(value(arg));
    }
    roff.control("TP", []).text(tag);
    let help = arg.get_long_help().or(arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let (first, rest) = help.split_once("\n\n").unwrap_or((&help, ""));
    paragraphs(roff, &sentence(first), "IP");
    if !rest.is_empty() {
        roff.control("IP", []);
        paragraphs(roff, rest, "IP");
    }
    if takes_value(arg) {
        values(roff, arg);
    }
}

/// The first line of a help has no full stop; between sentences it needs one.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', ':']) {
        return text.to_owned();
    }
    format!("{text}.")
}

/// What an option may be, and what it is when it is left out.
fn values(roff: &mut Roff, arg: &Arg) {
    let default: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|v| format!("`{}`", v.to_string_lossy()))
        .collect();
    let all = arg.get_possible_values();
    let told: Vec<&PossibleValue> = all.iter().filter(|v| !v.is_hide_set()).collect();
    let explained = told.iter().any(|v| v.get_help().is_some());
    if !told.is_empty() && !explained {
        let names: Vec<String> = told.iter().map(|v| format!("`{}`", v.get_name())).collect();
        fill(roff, &format!("One of {}.", names.join(", ")));
    }
    if !default.is_empty() {
        fill(roff, &format!("The default is {}.", default.join(", ")));
    }
    if explained {
        roff.control("RS", []);
        for value in told {
            roff.control("TP", []).text([bold(value.get_name())]);
            let help = value.get_help().map(ToString::to_string);
            fill(roff, &sentence(&help.unwrap_or_default()));
        }
        roff.control("RE", []);
    }
}

/// What stands at the end of the long help: tables of a number and what it means, under headings in capitals.
fn closing(roff: &mut Roff, command: &Command) {
    let text = command.get_after_long_help().map(ToString::to_string);
    for line in text.unwrap_or_default().lines() {
        let line = line.trim();
        if let Some(heading) = line.strip_suffix(':').filter(|h| *h == h.to_uppercase()) {
            roff.control("SH", [heading]);
            continue;
        }
        let (number, words) = line.split_once("  ").unwrap_or(("", line));
        if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
            roff.control("TP", []).text([bold(number)]);
            fill(roff, &sentence(words));
        } else {
            fill(roff, line);
        }
    }
}

/// The pages to read next: for the program all of its commands', for a command those that its help names.
fn see_also(roff: &mut Roff, root: &Command, command: Option<&Command>) {
    let mut pages: Vec<(String, &str)> = Vec::new();
    let help = command.map(|c| c.get_long_about().map(ToString::to_string));
    let help = help.flatten().unwrap_or_default();
    let named: Vec<&str> = help.split('`').skip(1).step_by(2).collect();
    let is_named = |other: &Command| {
        named.iter().any(|code| {
            let mut words = code.split_whitespace();
            let first = words.next().filter(|w| *w != root.get_name());
            first.or_else(|| words.next()) == Some(other.get_name())
        })
    };
    if command.is_some() {
        pages.push((root.get_name().to_owned(), "1"));
    }
    for other in root.get_subcommands().filter(|c| !c.is_hide_set()) {
        let own = command.is_some_and(|c| c.get_name() == other.get_name());
        if !own && (command.is_none() || is_named(other)) {
            pages.push((title(root, Some(other)), "1"));
        }
    }
    pages.extend(["formats", "json"].map(|n| (format!("{}-{n}", root.get_name()), "5")));
    let last = pages.len().saturating_sub(1);
    for (at, (name, section)) in pages.into_iter().enumerate() {
        let comma = if at == last { "" } else { "," };
        roff.text([bold(name), roman(format!("({section}){comma}"))]);
    }
}
