//! What changes between two contents of a file, as a unified diff for the eye: lines are sanitised, a carriage return, a
//! byte order mark and a missing last line end are visible, and what is no text or too long is named with its size
//! instead of shown. For reading only: a plan never goes by this.

mod hunks;
mod stat;

use std::path::Path;

pub use stat::{Counted, Stat, table};

use super::{Paint, Style, path_text};

/// A content over this many bytes is named, not shown: nobody reads it on a terminal.
const LONGEST: usize = 4 << 20;
/// A NUL among this many first bytes marks a file as binary.
const SNIFF: usize = 8000;

/// One side of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side<'a> {
    /// There is no file.
    Absent,
    /// A file with these bytes.
    Bytes(&'a [u8]),
    /// A file whose bytes are not at hand, with the reason in words.
    NotShown(&'a str),
}

/// A diff as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unified {
    /// The text; empty where both sides are equal.
    pub text: String,
    /// The count of lines; `None` where the contents are not text or not at hand.
    pub stat: Option<Stat>,
}

/// Says that a file goes from one name to another with the same bytes.
#[must_use]
pub fn renamed(from: &Path, to: &Path, style: Style) -> String {
    let line =
        |words: &str, path| style.paint(Paint::Bold, &format!("{words} {}", path_text(path)));
    format!("{}\n{}\n", line("rename from", from), line("rename to", to))
}

/// Says that only the permission bits of a file change.
#[must_use]
pub fn mode(path: &Path, old: u32, new: u32, style: Style) -> String {
    let heads = heads(path, Side::Bytes(&[]), Side::Bytes(&[]), style);
    format!("{heads}old mode {old:04o}\nnew mode {new:04o}\n")
}

/// Writes what must happen to `old` to make it `new`.
#[must_use]
pub fn unified(path: &Path, old: Side<'_>, new: Side<'_>, style: Style) -> Unified {
    if old == new && !matches!(old, Side::NotShown(_)) {
        return Unified {
            text: String::new(),
            stat: Some(Stat::default()),
        };
    }
    let mut text = heads(path, old, new, style);
    let stat = if let (Some(a), Some(b)) = (lines(old), lines(new)) {
        Some(hunks::write(&a, &b, style, &mut text))
    } else {
        let words = format!("({} -> {})\n", words(old), words(new));
        text.push_str(&words);
        None
    };
    Unified { text, stat }
}

fn heads(path: &Path, old: Side<'_>, new: Side<'_>, style: Style) -> String {
    let name = path_text(path);
    let of = |side: Side<'_>| match side {
        Side::Absent => "/dev/null".to_owned(),
        Side::Bytes(_) | Side::NotShown(_) => name.clone(),
    };
    let old = style.paint(Paint::Bold, &format!("--- {}", of(old)));
    let new = style.paint(Paint::Bold, &format!("+++ {}", of(new)));
    format!("{old}\n{new}\n")
}

/// The lines of a side, line ends included, where it is text that can be shown. Split at 0x0A only: a lone carriage
/// return ends no line.
fn lines(side: Side<'_>) -> Option<Vec<&[u8]>> {
    match side {
        Side::Absent => Some(Vec::new()),
        Side::Bytes(b) if what(b) == What::Text => {
            Some(b.split_inclusive(|c| *c == b'\n').collect())
        }
        Side::Bytes(_) | Side::NotShown(_) => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Text,
    Binary,
    NoText,
    Long,
}

fn what(bytes: &[u8]) -> What {
    if bytes.iter().take(SNIFF).any(|b| *b == 0) {
        What::Binary
    } else if bytes.len() > LONGEST {
        What::Long
    } else if std::str::from_utf8(bytes).is_err() {
        What::NoText
    } else {
        What::Text
    }
}

/// A side in words, for when its bytes are not shown.
fn words(side: Side<'_>) -> String {
    match side {
        Side::Absent => "no file".to_owned(),
        Side::NotShown(why) => super::sanitise(why).into_owned(),
        Side::Bytes(b) => {
            let kind = match what(b) {
                What::Text => "text",
                What::Binary => "binary",
                What::NoText => "not UTF-8",
                What::Long => "too long to show",
            };
            format!("{kind}, {}", super::text::count(b.len(), "byte", "bytes"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: Side<'_>, new: Side<'_>) -> Unified {
        unified(Path::new("src/a.rs"), old, new, Style::Plain)
    }

    fn bytes(old: &[u8], new: &[u8]) -> Unified {
        diff(Side::Bytes(old), Side::Bytes(new))
    }

    const HEADS: &str = "--- src/a.rs\n+++ src/a.rs\n";

    #[test]
    fn a_changed_line_stands_in_its_context() {
        let got = bytes(
            b"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
        );
        let want = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(got.text, format!("{HEADS}{want}"));
        assert_eq!(got.stat.unwrap().to_string(), "+1 -1");
    }

    #[test]
    fn far_changes_are_hunks_of_their_own() {
        let old: Vec<String> = (0..41).map(|n| n.to_string()).collect();
        let old = old.join("\n");
        let new = old.replace("\n3\n", "\nthree\n").replace("\n33\n", "\n");
        let got = bytes(old.as_bytes(), new.as_bytes());
        assert_eq!(got.text.matches("@@ -").count(), 2);
        assert_eq!(
            got.stat,
            Some(Stat {
                added: 1,
                removed: 2
            })
        );
    }

    #[test]
    fn equal_sides_have_no_text() {
        assert_eq!(bytes(b"a\n", b"a\n").text, "");
        assert_eq!(bytes(&[0, 1], &[0, 1]).stat, Some(Stat::default()));
        assert_eq!(diff(Side::Absent, Side::Absent).text, "");
    }

    #[test]
    fn a_new_file_and_a_removed_one_are_told_from_an_empty_one() {
        let new = diff(Side::Absent, Side::Bytes(b"a\n"));
        assert_eq!(new.text, "--- /dev/null\n+++ src/a.rs\n@@ -0,0 +1 @@\n+a\n");
        let gone = diff(Side::Bytes(b"a\n"), Side::Absent);
        assert_eq!(
            gone.text,
            "--- src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        );
        let empty = diff(Side::Absent, Side::Bytes(b""));
        assert_eq!(empty.text, "--- /dev/null\n+++ src/a.rs\n");
        assert_eq!(empty.stat, Some(Stat::default()));
    }

    #[test]
    fn line_ends_byte_order_mark_and_missing_last_line_end_are_visible() {
        let got = bytes(b"\xef\xbb\xbfa\r\nb", b"a\nb\n");
        let want = "@@ -1,2 +1,2 @@\n-\\u{feff}a\\r\n-b\n\\ No newline at end of file\n+a\n+b\n";
        assert_eq!(got.text, format!("{HEADS}{want}"));
    }

    #[test]
    fn a_file_cannot_steer_the_terminal() {
        let got = bytes(b"", b"\x1b[2J\tx\ry\xe2\x80\xae\n");
        assert_eq!(
            got.text,
            format!("{HEADS}@@ -0,0 +1 @@\n+\\u{{1b}}[2J\tx\\ry\\u{{202e}}\n")
        );
    }

    #[test]
    fn what_is_no_text_is_named_with_its_size() {
        let got = bytes(b"\x89PNG\0", b"abc");
        assert_eq!(
            got.text,
            format!("{HEADS}(binary, 5 bytes -> text, 3 bytes)\n")
        );
        assert_eq!(got.stat, None);
        let got = diff(Side::Bytes(b"caf\xe9"), Side::Absent);
        assert!(
            got.text.ends_with("(not UTF-8, 4 bytes -> no file)\n"),
            "{}",
            got.text
        );
        let long = vec![b'x'; LONGEST + 1];
        let got = diff(Side::Bytes(&long), Side::NotShown("the copy is gone"));
        let want = "(too long to show, 4194305 bytes -> the copy is gone)\n";
        assert!(got.text.ends_with(want), "{}", got.text);
    }

    #[test]
    fn unknown_is_never_shown_as_equal() {
        let side = Side::NotShown("not recorded");
        assert!(diff(side, side).text.contains("not recorded"));
        assert_eq!(diff(side, side).stat, None);
    }

    fn coloured(old: &[u8], new: &[u8]) -> String {
        unified(
            Path::new("a"),
            Side::Bytes(old),
            Side::Bytes(new),
            Style::Coloured,
        )
        .text
    }

    #[test]
    fn colour_changes_no_word() {
        for (old, new) in [
            (&b"x\n"[..], &b"y\n"[..]),
            (b"let total = a + b;\nsame\n", b"let sum = a + b;\nsame\n"),
            (
                "fa\u{200d}mily 👩‍👩‍👧 a\n".as_bytes(),
                "fa\u{200d}mily 👩‍👩‍👦 a\n".as_bytes(),
            ),
            (b"a b c\r\nno end", b"a \x1b[2J c\nno end\n"),
        ] {
            let plain = unified(
                Path::new("a"),
                Side::Bytes(old),
                Side::Bytes(new),
                Style::Plain,
            );
            let stripped = console::strip_ansi_codes(&coloured(old, new)).into_owned();
            assert_eq!(stripped, plain.text);
        }
    }

    #[test]
    fn the_words_that_differ_stand_out_in_lines_that_are_alike() {
        let text = coloured(b"let total = a + b;\n", b"let sum = a + b;\n");
        assert!(text.contains("\x1b[31m\x1b[7mtotal\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[32m\x1b[7msum\x1b[0m"), "{text:?}");
        // Lines that have nothing in common are not picked to pieces.
        let text = coloured(b"x\n", b"y\n");
        assert!(
            text.contains("\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n"),
            "{text:?}"
        );
    }

    #[test]
    fn very_long_lines_are_not_looked_into() {
        let (old, new) = ("a ".repeat(100_000), "a ".repeat(100_000) + "b");
        let text = coloured(old.as_bytes(), new.as_bytes());
        assert!(!text.contains("\x1b[7m"));
    }

    #[test]
    fn a_rename_and_a_change_of_mode_are_said() {
        let (a, b) = (Path::new("a"), Path::new("d/b"));
        assert_eq!(
            renamed(a, b, Style::Plain),
            "rename from a\nrename to d/b\n"
        );
        let text = mode(a, 0o644, 0o755, Style::Plain);
        assert_eq!(text, "--- a\n+++ a\nold mode 0644\nnew mode 0755\n");
    }
}
