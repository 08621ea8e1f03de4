//! What changes between two contents of a file, as a unified diff for the eye: lines are sanitised, a carriage return, a
//! byte order mark and a missing last line end are visible, and what is no text or too long is named with its size
//! instead of shown. For reading only: a plan never goes by this.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag, TextDiff, TextDiffConfig};

use super::{Paint, Style, path_text, sanitise_lines};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// A content over this many bytes is named, not shown: nobody reads it on a terminal.
const LONGEST: usize = 4 << 20;
/// After this the diff need not be the shortest one.
const PATIENCE: Duration = Duration::from_secs(1);
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

/// How many lines a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Lines that are new.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
}

impl std::fmt::Display for Stat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} -{}", self.added, self.removed)
    }
}

/// A diff as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unified {
    /// The text; empty where both sides are equal.
    pub text: String,
    /// The count of lines; `None` where the contents are not text or not at hand.
    pub stat: Option<Stat>,
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
        Some(hunks(&a, &b, style, &mut text))
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

fn hunks(old: &[&[u8]], new: &[&[u8]], style: Style, text: &mut String) -> Stat {
    let diff: TextDiff<'_, '_, [u8]> = TextDiffConfig::default()
        .timeout(PATIENCE)
        .diff_slices(old, new);
    let mut stat = Stat::default();
    let mut side = Sides {
        old,
        new,
        style,
        text,
    };
    for ops in diff.grouped_ops(CONTEXT) {
        if ops.is_empty() {
            continue;
        }
        let head = UnifiedHunkHeader::new(&ops).to_string();
        side.text.push_str(&style.paint(Paint::Place, &head));
        side.text.push('\n');
        for op in &ops {
            side.op(op, &mut stat);
        }
    }
    stat
}

struct Sides<'a> {
    old: &'a [&'a [u8]],
    new: &'a [&'a [u8]],
    style: Style,
    text: &'a mut String,
}

impl Sides<'_> {
    fn op(&mut self, op: &DiffOp, stat: &mut Stat) {
        let old = self.old.get(op.old_range()).unwrap_or_default();
        let new = self.new.get(op.new_range()).unwrap_or_default();
        if op.tag() == DiffTag::Equal {
            self.lines(' ', Paint::Plain, old);
            return;
        }
        self.lines('-', Paint::Removed, old);
        self.lines('+', Paint::Added, new);
        stat.removed += old.len();
        stat.added += new.len();
    }

    fn lines(&mut self, sign: char, paint: Paint, lines: &[&[u8]]) {
        for line in lines {
            self.line(sign, paint, line);
        }
    }

    fn line(&mut self, sign: char, paint: Paint, line: &[u8]) {
        let body = line.strip_suffix(b"\n");
        let shown = String::from_utf8_lossy(body.unwrap_or(line));
        let shown = format!("{sign}{}", sanitise_lines(&shown));
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{}", self.style.paint(paint, &shown));
        if body.is_none() {
            self.text.push_str("\\ No newline at end of file\n");
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

    #[test]
    fn colour_marks_whole_lines_and_changes_no_word() {
        let path = Path::new("a");
        let sides = (
            Side::Bytes(b"x\n".as_slice()),
            Side::Bytes(b"y\n".as_slice()),
        );
        let coloured = unified(path, sides.0, sides.1, Style::Coloured).text;
        let plain = unified(path, sides.0, sides.1, Style::Plain).text;
        assert!(
            coloured.contains("\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n"),
            "{coloured:?}"
        );
        let stripped = ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m"]
            .iter()
            .fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(stripped, plain);
    }
}
