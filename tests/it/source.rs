//! Reads Rust source just well enough to hold a house rule: words and signs without comments, strings and test code, and
//! the paths that they name, `use` groups spelled out. No grammar: a macro could hide a path from it, and no rule here
//! is about code that wants to hide.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word or a sign of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A path as named in the code, such as `std::fs::write`, `.set_len` for a method, `println!` for a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) parts: Vec<String>,
    pub(crate) line: usize,
}

/// The code of a file.
pub(crate) struct Source {
    /// Tokens outside of test code.
    pub(crate) tokens: Vec<Token>,
    /// Number of lines outside of test code.
    pub(crate) lines: usize,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        let mut tokens = tokens(text);
        let mut lines = text.lines().count();
        while let Some((start, end)) = test_item(&tokens) {
            lines -= tokens[end].line - tokens[start].line + 1;
            tokens.drain(start..=end);
        }
        Self { tokens, lines }
    }

    /// Every path that the code names.
    pub(crate) fn paths(&self) -> Vec<Named> {
        let mut named = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            at = self.path(at, &[], &mut named).max(at + 1);
        }
        named
    }

    /// Reads the path that begins at a token, below a prefix; returns the place behind it.
    fn path(&self, start: usize, prefix: &[String], named: &mut Vec<Named>) -> usize {
        let mut at = start;
        let mut parts = prefix.to_vec();
        while self.is_word(at) {
            // `fs::{self, …}` names the folder itself.
            if self.text(at) != "self" || parts.is_empty() {
                parts.push(self.text(at).to_owned());
            }
            at += 1;
            if self.text(at) != "::" {
                break;
            }
            at += 1;
        }
        match self.text(at) {
            "{" if at > start && self.text(at - 1) == "::" => return self.group(at, &parts, named),
            "*" if at == start || self.text(at - 1) == "::" => {
                parts.push("*".to_owned());
                at += 1;
            }
            "!" if parts.len() == 1 => parts[0].push('!'),
            _ => {}
        }
        if parts.len() == 1 && start > 0 && self.text(start - 1) == "." {
            parts[0].insert(0, '.');
        }
        if at > start {
            let line = self.tokens[start].line;
            named.push(Named { parts, line });
        }
        at
    }

    /// Reads the group of a `use` that opens at a token.
    fn group(&self, open: usize, prefix: &[String], named: &mut Vec<Named>) -> usize {
        let mut at = open + 1;
        while at < self.tokens.len() {
            match self.text(at) {
                "}" => return at + 1,
                "," => at += 1,
                "as" => at += 2,
                _ => at = self.path(at, prefix, named).max(at + 1),
            }
        }
        at
    }

    /// The names of the types that the code makes.
    pub(crate) fn types(&self) -> Vec<&Token> {
        let makes = |t: &Token| matches!(&*t.text, "struct" | "enum" | "trait" | "type" | "union");
        self.tokens
            .windows(2)
            .filter(|pair| makes(&pair[0]) && is_word(&pair[1].text))
            .map(|pair| &pair[1])
            .collect()
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |t| &t.text)
    }

    fn is_word(&self, at: usize) -> bool {
        is_word(self.text(at))
    }
}

fn is_word(text: &str) -> bool {
    text.chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_')
}

/// First and last token of the first item that is there for tests only.
fn test_item(tokens: &[Token]) -> Option<(usize, usize)> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let is_mark = |w: &[Token]| w.iter().map(|t| &*t.text).eq(mark);
    let start = tokens.windows(mark.len()).position(is_mark)?;
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start + mark.len()) {
        match &*token.text {
            "{" => depth += 1,
            "}" if depth == 1 => return Some((start, at)),
            "}" => depth -= 1,
            ";" if depth == 0 => return Some((start, at)),
            _ => {}
        }
    }
    None
}

fn tokens(text: &str) -> Vec<Token> {
    let mut scan = Scan {
        text,
        chars: text.char_indices().peekable(),
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some((at, c)) = scan.next() {
        let line = scan.line;
        if let Some(text) = scan.token(at, c) {
            tokens.push(Token { text, line });
        }
    }
    tokens
}

struct Scan<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: usize,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<(usize, char)> {
        let next = self.chars.next();
        if let Some((_, '\n')) = next {
            self.line += 1;
        }
        next
    }

    fn rest(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or("")
    }

    /// Goes on to an offset.
    fn skip_to(&mut self, end: usize) {
        while self.chars.peek().is_some_and(|(at, _)| *at < end) {
            self.next();
        }
    }

    /// The token that begins with a character; `None` for blanks, comments and literals of text.
    fn token(&mut self, at: usize, c: char) -> Option<String> {
        let rest = self.rest(at);
        if rest.starts_with("//") {
            self.skip_to(at + rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.skip_to(at + comment(rest));
        } else if let Some(len) = literal(rest) {
            self.skip_to(at + len);
        } else if c == ':' && rest.starts_with("::") {
            self.next();
            return Some("::".to_owned());
        } else if c.is_alphanumeric() || c == '_' {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let len = rest.find(|c| !word(c)).unwrap_or(rest.len());
            let text = rest[..len].to_owned();
            self.skip_to(at + len);
            return Some(text);
        } else if !c.is_whitespace() {
            return Some(c.to_string());
        }
        None
    }
}

/// Length of a block comment, which may hold others.
fn comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let step = if rest.starts_with(b"/*") {
            1
        } else {
            -i32::from(rest.starts_with(b"*/"))
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a literal of text or of one character at the start; `None` where there is none.
fn literal(text: &str) -> Option<usize> {
    let body = text.trim_start_matches(['b', 'c']);
    let lead = text.len() - body.len();
    if lead > 1 {
        return None;
    }
    if let Some(raw) = body.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let open = raw.get(hashes..)?.strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        return Some(lead + 1 + hashes + 1 + open.find(&close)? + close.len());
    }
    let quote = body.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut chars = body.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            c if c == quote => return Some(lead + at + 1),
            _ => {}
        }
        // Two characters without a closing quote: a lifetime, not a character.
        if quote == '\'' && at > 1 && !body.starts_with("'\\") {
            return None;
        }
    }
    None
}

fn named(text: &str) -> Vec<String> {
    let paths = Source::of(text).paths();
    paths.into_iter().map(|n| n.parts.join("::")).collect()
}

#[test]
fn groups_of_a_use_are_spelled_out() {
    assert_eq!(
        named("use std::{fs::{self, write as put}, io::*, env::{*}, net::{self}};"),
        [
            "use",
            "std::fs",
            "std::fs::write",
            "std::io::*",
            "std::env::*",
            "std::net"
        ]
    );
}

#[test]
fn methods_and_macros_are_told_from_functions() {
    assert_eq!(
        named("file.set_len(0); println!(x); fs::rename(a, b);"),
        ["file", ".set_len", "println!", "x", "fs::rename", "a", "b"]
    );
}

#[test]
fn comments_and_literals_name_nothing() {
    let text = r##"
        // std::fs
        /* std::env /* nested */ std::io */
        let a = "crate::ckpt \" std::fs"; let b = r#"std::env "x" "#; let c = b"std::io"; let d = '"'; let e = b'\'';
        fn f<'a>(x: &'a str) {} // lifetimes are no characters
    "##;
    let found = named(text);
    assert!(!found.iter().any(|p| p.contains("::")), "{found:?}");
    assert!(
        found.contains(&"f".to_owned()) && found.contains(&"str".to_owned()),
        "{found:?}"
    );
}

#[test]
fn test_code_is_left_out_and_not_counted() {
    let text =
        "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { std::fs::write(); }\n}\nfn c() {}\n";
    let source = Source::of(text);
    assert_eq!(source.lines, 2);
    assert_eq!(named(text), ["fn", "a", "fn", "c"]);
    assert_eq!(Source::of("#[cfg(test)]\nmod tests;\nfn c() {}\n").lines, 1);
}

#[test]
fn types_are_found_by_their_name() {
    let source =
        Source::of("pub struct Cart<T> { a: T } enum Kind {} trait Ask {} type Scan = u8;");
    let names: Vec<_> = source.types().iter().map(|t| t.text.clone()).collect();
    assert_eq!(names, ["Cart", "Kind", "Ask", "Scan"]);
}
