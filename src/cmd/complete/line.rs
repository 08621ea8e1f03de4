//! The line at which Tab was pressed, as its shell handed it over, made plain: bash cuts words at `=`, and bash and zsh
//! leave quotes and `~` as they were typed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::Shell;

use crate::env::Env;

/// The words of a line and the one that is being typed.
#[derive(Debug)]
pub(super) struct Line {
    words: Vec<OsString>,
    at: usize,
    home: Option<PathBuf>,
}

impl Line {
    /// The line; `None` where the shell names a word that is not there.
    pub(super) fn new(words: &[OsString], shell: Shell, env: &Env) -> Option<Self> {
        let mut words = words.to_vec();
        let told = || env.var("_CLAP_COMPLETE_INDEX")?.to_str()?.parse().ok();
        let at = match shell {
            Shell::Fish | Shell::PowerShell => words.len().checked_sub(1)?,
            _ => told()?,
        };
        // zsh leaves the word out that nothing was typed of yet.
        if at == words.len() {
            words.push(OsString::new());
        }
        words.get(at)?;
        if shell == Shell::Bash {
            join(&mut words, at);
        }
        let raw = matches!(shell, Shell::Bash | Shell::Zsh);
        for (n, word) in words.iter_mut().enumerate() {
            if raw {
                *word = bare(word);
            }
            if n < at && is_from_end(word) {
                // To the engine `-1` is an option, and the turn would be still to come.
                *word = OsString::from("0");
            }
        }
        let home = env.home.clone();
        Some(Self { words, at, home })
    }

    pub(super) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Which of the words is being typed.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What is typed of it.
    pub(super) fn current(&self) -> &OsStr {
        self.words.get(self.at).map_or(OsStr::new(""), |w| w)
    }

    /// Whether it stands behind `--`.
    pub(super) fn is_behind_dashes(&self) -> bool {
        self.words.iter().take(self.at).any(|w| w == "--")
    }

    /// The value of an option that stands elsewhere in the line.
    pub(super) fn value(&self, short: &str, long: &str) -> Option<OsString> {
        let words = self.words.iter().enumerate();
        let mut words = words.skip(1).take_while(|(_, w)| *w != "--");
        while let Some((at, word)) = words.next() {
            if at == self.at {
                continue;
            }
            if word == short || word == long {
                let value = words.next().filter(|(at, _)| *at != self.at);
                return value.map(|(_, w)| self.expanded(w));
            }
            let text = word.to_str().unwrap_or_default();
            let behind = text
                .strip_prefix(long)
                .and_then(|t| t.strip_prefix('='))
                .or_else(|| text.strip_prefix(short).filter(|t| !t.is_empty()));
            if let Some(value) = behind {
                return Some(self.expanded(OsStr::new(value)));
            }
        }
        None
    }

    /// The word as the shell would give it to the program.
    fn expanded(&self, word: &OsStr) -> OsString {
        let below = word.to_str().and_then(|w| w.strip_prefix("~/"));
        match (below, &self.home) {
            (Some(below), Some(home)) => home.join(below).into_os_string(),
            _ => word.to_owned(),
        }
    }
}

/// Takes the cuts at `=` back: `--scope`, `=`, `co` is `--scope co`. The number of words stays, since the shell counted
/// them: an option that nobody has stands in the free place, and the engine passes over it.
fn join(words: &mut [OsString], at: usize) {
    for n in 2..=at {
        let Some([option, sign, _]) = words.get_mut(n - 2..=n) else {
            continue;
        };
        if sign == "=" && option.as_encoded_bytes().starts_with(b"--") {
            std::mem::swap(option, sign);
            *option = OsString::from("--_");
        }
    }
}

/// A word without its quotes and backslashes. One with a quote that is still open stays as it is.
fn bare(word: &OsStr) -> OsString {
    let Some(text) = word.to_str() else {
        return word.to_owned();
    };
    let mut out = String::new();
    let mut open = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, open) {
            ('\\', None | Some('"')) => out.extend(chars.next()),
            ('\'' | '"', None) => open = Some(c),
            (c, Some(quote)) if c == quote => open = None,
            _ => out.push(c),
        }
    }
    if open.is_some() {
        return word.to_owned();
    }
    OsString::from(out)
}

/// A turn, counted from the end.
fn is_from_end(word: &OsStr) -> bool {
    let digits = word.as_encoded_bytes().strip_prefix(b"-");
    digits.is_some_and(|d| !d.is_empty() && d.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str], at: usize, shell: Shell) -> Line {
        let mut env = Env::bare();
        env.home = Some(PathBuf::from("/home/dev"));
        env.vars.insert(
            OsString::from("_CLAP_COMPLETE_INDEX"),
            OsString::from(at.to_string()),
        );
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Line::new(&words, shell, &env).unwrap()
    }

    fn session(words: &[&str], at: usize) -> Option<OsString> {
        line(words, at, Shell::Zsh).value("-s", "--session")
    }

    #[test]
    fn an_option_that_was_typed_is_found_in_each_form() {
        for words in [
            ["rewind", "show", "-s", "abc", ""].as_slice(),
            &["rewind", "-s", "abc", "show", ""],
            &["rewind", "show", "--session=abc", "-q", ""],
            &["rewind", "show", "-sabc", "-q", ""],
            &["rewind", "show", "-s", "'abc'", ""],
        ] {
            assert_eq!(session(words, 4), Some("abc".into()), "{words:?}");
        }
        assert_eq!(
            session(&["rewind", "show", "", "-s", "abc"], 2),
            Some("abc".into())
        );
    }

    #[test]
    fn an_option_that_is_being_typed_has_no_value_yet() {
        assert_eq!(session(&["rewind", "show", "-s", "ab"], 3), None);
        assert_eq!(session(&["rewind", "show", "-sab"], 2), None);
        assert_eq!(
            session(&["rewind", "restore", "1", "--", "-s", "x", ""], 6),
            None
        );
    }

    #[test]
    fn home_and_quotes_are_what_the_shell_makes_of_them() {
        let line = line(&["rewind", "-w", "~/my\\ shop", "show", ""], 4, Shell::Bash);
        let folder = line.value("-w", "--workspace");
        assert_eq!(folder, Some("/home/dev/my shop".into()));
        assert_eq!(bare(OsStr::new("a'b c'\"d\\\"\"")), "ab cd\"");
        assert_eq!(bare(OsStr::new("'open")), "'open");
    }

    #[test]
    fn bash_cuts_a_word_at_the_equals_sign() {
        let words = ["rewind", "list", "--json", "=", "ob"];
        let line = line(&words, 4, Shell::Bash);
        assert_eq!(line.words(), ["rewind", "list", "--_", "--json", "ob"]);
        assert_eq!(line.current(), "ob");
    }

    #[test]
    fn a_turn_from_the_end_is_a_turn() {
        let line = line(&["rewind", "restore", "-1", "-2"], 3, Shell::Zsh);
        assert_eq!(line.words(), ["rewind", "restore", "0", "-2"]);
    }

    #[test]
    fn a_word_that_is_not_there_is_no_line() {
        let words = [OsString::from("rewind")];
        let mut env = Env::bare();
        assert!(Line::new(&words, Shell::Bash, &env).is_none());
        for at in ["7", "-1", "x", "99999999999999999999999"] {
            env.vars
                .insert("_CLAP_COMPLETE_INDEX".into(), OsString::from(at));
            assert!(Line::new(&words, Shell::Bash, &env).is_none(), "{at}");
        }
    }
}
