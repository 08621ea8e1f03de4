//! The hunks of a diff: lines with their signs, and in lines that are alike the words that differ. Time is bounded: after
//! a second the diff need not be the shortest one, and long lines are not looked into.

use std::fmt::Write as _;
use std::time::Duration;

use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, DiffTag, TextDiff, TextDiffConfig};

use super::Stat;
use crate::ui::{Paint, Style, sanitise_lines};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// After this the diff need not be the shortest one.
const PATIENCE: Duration = Duration::from_secs(1);
/// In so many bytes of changed lines words are compared; what follows is shown without. Counted, not timed: the same
/// diff looks the same on a slow machine.
const WORDS: usize = 256 << 10;
/// A longer line is not looked into, in bytes.
const LINE: usize = 2000;
/// Of a longer change no words are compared, in lines of both sides.
const BLOCK: usize = 60;

type Diff<'a> = TextDiff<'a, 'a, [u8]>;

/// Writes the hunks between the lines of two contents; returns the count of lines.
pub(super) fn write(old: &[&[u8]], new: &[&[u8]], style: Style, text: &mut String) -> Stat {
    let diff: Diff<'_> = TextDiffConfig::default()
        .timeout(PATIENCE)
        .diff_slices(old, new);
    let mut stat = Stat::default();
    let mut side = Sides {
        old,
        new,
        style,
        words_left: WORDS,
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
            side.op(&diff, op, &mut stat);
        }
    }
    stat
}

struct Sides<'a> {
    old: &'a [&'a [u8]],
    new: &'a [&'a [u8]],
    style: Style,
    words_left: usize,
    text: &'a mut String,
}

impl Sides<'_> {
    fn op(&mut self, diff: &Diff<'_>, op: &DiffOp, stat: &mut Stat) {
        let old = self.old.get(op.old_range()).unwrap_or_default();
        let new = self.new.get(op.new_range()).unwrap_or_default();
        if op.tag() == DiffTag::Equal {
            self.lines(' ', Paint::Plain, old);
            return;
        }
        stat.removed += old.len();
        stat.added += new.len();
        if op.tag() == DiffTag::Replace && self.style == Style::Coloured && is_short(old, new) {
            let bytes = old.iter().chain(new).map(|l| l.len()).sum();
            if let Some(left) = self.words_left.checked_sub(bytes) {
                self.words_left = left;
                self.words(diff, op);
                return;
            }
        }
        self.lines('-', Paint::Removed, old);
        self.lines('+', Paint::Added, new);
    }

    /// Lines in the place of others, with what differs in them marked where they are alike.
    fn words(&mut self, diff: &Diff<'_>, op: &DiffOp) {
        for change in diff.iter_inline_changes(op) {
            let (sign, paint) = match change.tag() {
                ChangeTag::Delete => ('-', Paint::Removed),
                ChangeTag::Insert => ('+', Paint::Added),
                ChangeTag::Equal => (' ', Paint::Plain),
            };
            let pieces: Vec<(bool, String)> = change
                .iter_strings_lossy()
                .map(|(differs, piece)| (differs, piece.into_owned()))
                .collect();
            let whole: String = pieces.iter().map(|(_, p)| p.as_str()).collect();
            let blank = |p: &str| p.trim().is_empty();
            // Nothing in it differs, or nothing is alike: then there is no word to point at.
            let kinds = |d: bool| pieces.iter().any(|(differs, p)| *differs == d && !blank(p));
            if !(kinds(true) && kinds(false)) {
                self.line(sign, paint, whole.as_bytes());
                continue;
            }
            self.text
                .push_str(&self.style.paint(paint, &sign.to_string()));
            for (differs, piece) in &pieces {
                let piece = sanitise_lines(piece.strip_suffix('\n').unwrap_or(piece));
                if piece.is_empty() {
                    continue;
                }
                let painted = match differs {
                    true => self.style.stress(paint, &piece),
                    false => self.style.paint(paint, &piece),
                };
                self.text.push_str(&painted);
            }
            self.end(whole.ends_with('\n'));
        }
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
        let _ = write!(self.text, "{}", self.style.paint(paint, &shown));
        self.end(body.is_some());
    }

    fn end(&mut self, ended: bool) {
        self.text.push('\n');
        if !ended {
            self.text.push_str("\\ No newline at end of file\n");
        }
    }
}

fn is_short(old: &[&[u8]], new: &[&[u8]]) -> bool {
    let all = || old.iter().chain(new);
    all().count() <= BLOCK && all().all(|l| l.len() <= LINE)
}
