//! Candidates as each shell's script takes them. A file's name is hostile text: bash and PowerShell put a candidate into
//! the line as it is, so what they would act upon is quoted; what cannot be shown as it is, is no candidate.

use std::borrow::Cow;

use clap_complete::{CompletionCandidate, Shell};

use super::line::Line;
use crate::env::Env;
use crate::ui::sanitise;

/// The answer.
pub(super) fn text(shell: Shell, line: &Line, found: &[CompletionCandidate], env: &Env) -> String {
    let shown = found.iter().filter_map(|c| {
        let value = c.get_value().to_str()?;
        let visible = matches!(sanitise(value), Cow::Borrowed(_));
        let help = c.get_help().map(ToString::to_string).unwrap_or_default();
        let help = sanitise(help.lines().next().unwrap_or_default()).into_owned();
        visible.then(|| (value.to_owned(), help))
    });
    let home = line.current().as_encoded_bytes().starts_with(b"~/");
    match shell {
        Shell::Fish => lines(shown, |v| v),
        Shell::PowerShell => lines(shown, powershell_word),
        // zsh would quote the `~`, and the word would be another.
        Shell::Zsh => joined(
            shown.filter(|(v, _)| !v.starts_with('~')).map(zsh_entry),
            env,
        ),
        Shell::Bash => joined(shown.map(|(value, _)| bash_word(&value, home)), env),
        _ => joined(shown.map(|(value, _)| value), env),
    }
}

/// A line a candidate, what it is behind a tab.
fn lines(shown: impl Iterator<Item = (String, String)>, word: impl Fn(String) -> String) -> String {
    let mut text = String::new();
    for (value, help) in shown {
        text.push_str(&word(value));
        if !help.is_empty() {
            text.extend(["\t", &help]);
        }
        text.push('\n');
    }
    text
}

/// Candidates with the separator between them that the script names.
fn joined(shown: impl Iterator<Item = String>, env: &Env) -> String {
    let separator = env.var("_CLAP_IFS").and_then(|v| v.to_str());
    shown.collect::<Vec<_>>().join(separator.unwrap_or("\n"))
}

/// zsh ends the value at the first `:` that has no backslash.
fn zsh_entry((value, help): (String, String)) -> String {
    let value = value.replace('\\', "\\\\").replace(':', "\\:");
    if help.is_empty() {
        return value;
    }
    format!("{value}:{}", help.replace('\\', "\\\\"))
}

/// A word that bash takes as it is. The `~` that the person typed stays one.
fn bash_word(value: &str, home: bool) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=@%+,:~".contains(c);
    let mut word = String::new();
    for (at, c) in value.chars().enumerate() {
        if !plain(c) || (c == '~' && at == 0 && !home) {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

fn powershell_word(value: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:+~\\".contains(c);
    if value.chars().all(plain) {
        return value;
    }
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_act_upon_is_quoted() {
        assert_eq!(bash_word("$(rm -r ~)", false), "\\$\\(rm\\ -r\\ ~\\)");
        assert_eq!(bash_word("~x", false), "\\~x");
        assert_eq!(bash_word("~/x y", true), "~/x\\ y");
        assert_eq!(bash_word("src/é.rs", false), "src/é.rs");
        assert_eq!(powershell_word("$(x)'".to_owned()), "'$(x)'''");
        assert_eq!(powershell_word("--scope".to_owned()), "--scope");
    }

    #[test]
    fn what_is_said_of_a_value_does_not_become_a_value() {
        let entry = zsh_entry(("a:b".to_owned(), "c:\\d".to_owned()));
        assert_eq!(entry, "a\\:b:c:\\\\d");
        let shown = [
            ("a".to_owned(), "b".to_owned()),
            ("c".to_owned(), String::new()),
        ];
        assert_eq!(lines(shown.into_iter(), |v| v), "a\tb\nc\n");
    }

    #[test]
    fn a_name_with_control_characters_is_no_candidate() {
        let env = Env::bare();
        let words = ["rewind".into(), "".into()];
        let line = Line::new(&words, Shell::Fish, &env).unwrap();
        let names = ["a\nb", "\u{1b}[2J", "\u{202e}gnp.exe", "plain"];
        let found: Vec<_> = names.map(CompletionCandidate::new).into();
        assert_eq!(text(Shell::Fish, &line, &found, &env), "plain\n");
    }
}
