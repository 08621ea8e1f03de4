//! Unified diffs, applied forward or in reverse at exactly the lines that their headers name.
//!
//! ```text
//! @@ -2,3 +2,3 @@
//!  key=1
//! -[b]
//! +[c]
//!  key=2
//! ```
//!
//! Nothing is ever searched for: every context line and every line that goes must stand where the header says, the
//! counts must be those of the body, and both line numbers must agree. Anything else is `None`, because an edit undone
//! at the wrong place would be a wrong file that looks right. A count that is left out is 1.
//!
//! Lines end at LF, and the CR of a CRLF belongs to its line. A CR without LF refuses the diff: some writers count it
//! as a line end and some do not, so the line numbers would mean two things.

/// Which way a diff is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Undo,
    Redo,
}

/// Returns the bytes before an edit from its diff and the exact bytes after it; `None` unless it is certain.
#[must_use]
pub fn undo_hunks(diff: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    apply(diff, after, Way::Undo)
}

/// Returns the bytes after an edit from its diff and the exact bytes before it; `None` unless it is certain.
#[must_use]
pub fn redo_hunks(diff: &[u8], before: &[u8]) -> Option<Vec<u8>> {
    apply(diff, before, Way::Redo)
}

fn apply(diff: &[u8], from: &[u8], way: Way) -> Option<Vec<u8>> {
    if lone_cr(diff) || lone_cr(from) {
        return None;
    }
    let mut lines = Lines(diff);
    let mut input = Lines(from);
    let mut done = Progress::default();
    let mut out = Vec::with_capacity(from.len() + diff.len());
    while !lines.0.is_empty() {
        let head = Header::read(lines.next()?)?;
        done.gap(&head, &mut input, &mut out)?;
        hunk(&head, &mut lines, &mut input, &mut out, way)?;
        done.old += head.old.count;
        done.new += head.new.count;
    }
    out.extend_from_slice(input.0);
    Some(out)
}

/// Whether a CR stands without its LF.
fn lone_cr(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'))
}

/// Lines with their line ends, one at a time.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0).map_or(self.0.len(), |n| n + 1);
        let (line, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(line)
    }
}

/// How many lines of either side lie behind.
#[derive(Default)]
struct Progress {
    old: usize,
    new: usize,
}

impl Progress {
    /// Copies the lines between the last hunk and this one. Both sides must be equally far away.
    fn gap(&mut self, head: &Header, input: &mut Lines<'_>, out: &mut Vec<u8>) -> Option<()> {
        let old = head.old.first()?.checked_sub(self.old)?;
        let new = head.new.first()?.checked_sub(self.new)?;
        if old != new {
            return None;
        }
        for _ in 0..old {
            let line = input.next()?;
            out.extend_from_slice(line);
        }
        self.old += old;
        self.new += new;
        Some(())
    }
}

/// One side of a hunk header.
struct Range {
    start: usize,
    count: usize,
}

impl Range {
    /// Reads `6,4` or `6`.
    fn read(text: &str) -> Option<Self> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |t: &str| {
            let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| t.parse::<usize>().ok()).flatten()
        };
        Some(Self {
            start: number(start)?,
            count: number(count)?,
        })
    }

    /// How many lines stand before the hunk. A side without lines names the line before it.
    fn first(&self) -> Option<usize> {
        if self.count == 0 {
            return Some(self.start);
        }
        self.start.checked_sub(1)
    }
}

/// A hunk header: `@@ -6 +6,4 @@`, with anything behind it.
struct Header {
    old: Range,
    new: Range,
}

impl Header {
    fn read(line: &[u8]) -> Option<Self> {
        let text = line.strip_prefix(b"@@ -")?;
        let end = memchr::memmem::find(text, b" @@")?;
        let ranges = std::str::from_utf8(text.get(..end)?).ok()?;
        let (old, new) = ranges.split_once(" +")?;
        Some(Self {
            old: Range::read(old)?,
            new: Range::read(new)?,
        })
    }
}

/// Applies the body of one hunk.
fn hunk(
    head: &Header,
    lines: &mut Lines<'_>,
    input: &mut Lines<'_>,
    out: &mut Vec<u8>,
    way: Way,
) -> Option<()> {
    let (mut old, mut new) = (head.old.count, head.new.count);
    while old > 0 || new > 0 {
        let (sign, line) = lines.next()?.split_first()?;
        let line = without_end(line, lines)?;
        match sign {
            b' ' => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
            b'-' => old = old.checked_sub(1)?,
            b'+' => new = new.checked_sub(1)?,
            _ => return None,
        }
        let goes = matches!((sign, way), (b'-', Way::Redo) | (b'+', Way::Undo));
        let comes = matches!((sign, way), (b'-', Way::Undo) | (b'+', Way::Redo));
        if !comes && input.next()? != line {
            return None;
        }
        if !goes {
            // Behind a line without an end there is no next line.
            if out.last().is_some_and(|b| *b != b'\n') {
                return None;
            }
            out.extend_from_slice(line);
        }
    }
    Some(())
}

/// The line as it stands in the file: without its line end where the next line of the diff says so. A line that has
/// none and is not said to have none was cut.
fn without_end<'a>(line: &'a [u8], lines: &mut Lines<'a>) -> Option<&'a [u8]> {
    if !lines.0.starts_with(b"\\") {
        return line.ends_with(b"\n").then_some(line);
    }
    lines.next()?;
    line.strip_suffix(b"\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_count_that_is_left_out_is_one() {
        let before = b"1\n2\n3\n4\n5\nadd\n";
        let after = b"1\n2\n3\n4\n5\nadd\n\n    total\n        sum\n";
        let diff = b"@@ -6 +6,4 @@\n add\n+\n+    total\n+        sum\n";
        assert_eq!(undo_hunks(diff, after).unwrap(), before);
        assert_eq!(redo_hunks(diff, before).unwrap(), after);
    }

    #[test]
    fn carriage_returns_and_a_missing_line_end_are_kept() {
        let before = b"first\r\nsecond";
        let after = b"first\r\nsecond line\n";
        let diff =
            b"@@ -1,2 +1,2 @@\n first\r\n-second\n\\ No newline at end of file\n+second line\n";
        assert_eq!(undo_hunks(diff, after).unwrap(), before);
        assert_eq!(redo_hunks(diff, before).unwrap(), after);
        assert_eq!(undo_hunks(diff, b"first\nsecond line\n"), None);
        assert_eq!(undo_hunks(diff, b"first\r\nsecond line"), None);
    }

    #[test]
    fn a_file_that_was_emptied_or_filled_comes_back() {
        let diff = b"@@ -1,2 +0,0 @@\n-a\n-b\n";
        assert_eq!(undo_hunks(diff, b"").unwrap(), b"a\nb\n");
        assert_eq!(redo_hunks(diff, b"a\nb\n").unwrap(), b"");
        let diff = b"@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n";
        assert_eq!(undo_hunks(diff, b"a").unwrap(), b"");
    }

    #[test]
    fn a_hunk_that_stands_one_line_off_is_refused() {
        let diff = b"@@ -2 +2 @@\n-old\n+new\n";
        assert!(undo_hunks(diff, b"a\nnew\nb\n").is_some());
        assert_eq!(undo_hunks(diff, b"new\na\nb\n"), None);
        assert_eq!(undo_hunks(diff, b"a\nb\nnew\n"), None);
        assert_eq!(undo_hunks(diff, b"a\nnew \nb\n"), None);
    }

    #[test]
    fn counts_that_are_not_those_of_the_body_are_refused() {
        for diff in [
            &b"@@ -2,2 +2 @@\n-old\n+new\n"[..],
            b"@@ -2 +2,2 @@\n-old\n+new\n",
            b"@@ -2 +2 @@\n-old\n+new\n+more\n",
            b"@@ -2 +2 @@\n",
            b"@@ -2 +2 @@\n-old\n+new",
            b"@@ -2 +3 @@\n-old\n+new\n",
            b"@@ -2 +2\n-old\n+new\n",
            b"@@ -+2 ++2 @@\n-old\n+new\n",
            b"@@ -99999999999999999999 +2 @@\n-old\n+new\n",
            b"--- a\n+++ b\n@@ -2 +2 @@\n-old\n+new\n",
        ] {
            assert_eq!(
                undo_hunks(diff, b"a\nnew\nb\n"),
                None,
                "{}",
                String::from_utf8_lossy(diff)
            );
        }
    }

    #[test]
    fn a_lone_carriage_return_is_refused_because_line_numbers_mean_two_things() {
        let diff = b"@@ -2 +2 @@\n-old\n+new\n";
        assert_eq!(undo_hunks(diff, b"a\nnew\nb\rc\n"), None);
    }

    #[test]
    fn no_hunks_mean_no_change() {
        assert_eq!(undo_hunks(b"", b"x\r\ny").unwrap(), b"x\r\ny");
    }

    fn file() -> impl Strategy<Value = String> {
        // Few different lines, so that a wrong place would often match as well.
        let line =
            prop::sample::select(vec!["a", "b", "", " ", "-", "+x", "@@ -1 +1 @@", "\\", "é"]);
        let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
        (
            prop::collection::vec((line, end), 0..24),
            prop::sample::select(vec!["", "z"]),
        )
            .prop_map(|(lines, tail)| {
                let mut text: String = lines.iter().flat_map(|(l, e)| [*l, *e]).collect();
                text.push_str(tail);
                text
            })
    }

    proptest! {
        #[test]
        fn undo_gives_the_bytes_before_and_redo_those_after(
            before in file(), after in file(), radius in 0usize..4,
        ) {
            let diff = similar::TextDiff::from_lines(&before, &after)
                .unified_diff()
                .context_radius(radius)
                .to_string();
            let undone = undo_hunks(diff.as_bytes(), after.as_bytes());
            prop_assert_eq!(undone.as_deref(), Some(before.as_bytes()));
            let redone = redo_hunks(diff.as_bytes(), before.as_bytes());
            prop_assert_eq!(redone.as_deref(), Some(after.as_bytes()));
        }

        #[test]
        fn any_bytes_are_survived(diff in prop::collection::vec(any::<u8>(), 0..80), after in file()) {
            let _ = undo_hunks(&diff, after.as_bytes());
            let mut framed = b"@@ -1,2 +1,2 @@\n".to_vec();
            framed.extend(diff);
            if let Some(before) = undo_hunks(&framed, after.as_bytes()) {
                let again = redo_hunks(&framed, &before);
                prop_assert_eq!(again.as_deref(), Some(after.as_bytes()));
            }
        }
    }
}
