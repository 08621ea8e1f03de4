//! How many lines changes add and remove: of one file, and of many as a table with bars.

use std::fmt;

use unicode_width::UnicodeWidthStr;

use crate::ui::text::{count, fit, pad};
use crate::ui::{Paint, Style};

/// How many lines a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Lines that are new.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{} -{}", self.added, self.removed)
    }
}

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its name, safe for the terminal.
    pub name: String,
    /// Its count; `None` where its contents are no text, or too long to be compared.
    pub stat: Option<Stat>,
    /// What else is to be said of it.
    pub note: String,
}

/// The longest bar, in columns.
const BAR: usize = 40;

/// The room that a bar has at least, where the screen has it.
const LEAST: usize = 10;

/// One line a file, and a line for all of them.
#[must_use]
pub fn table(files: &[Counted], style: Style, width: Option<usize>) -> String {
    let counts = |f: &Counted| match f.stat {
        Some(stat) => stat.to_string(),
        None => f.note.clone(),
    };
    let wide = |f: &Counted| counts(f).width();
    let number = files.iter().map(wide).max().unwrap_or(0);
    let longest = files.iter().map(|f| f.name.width()).max().unwrap_or(0);
    let limit = width.unwrap_or(usize::MAX);
    // Long names give way to bars that can be told apart.
    let name = longest.min(limit.saturating_sub(number + 5 + LEAST).max(8));
    let room = limit.saturating_sub(name + number + 5).min(BAR);
    let most = files.iter().filter_map(|f| f.stat).map(lines).max();
    let mut out = String::new();
    for file in files {
        let shown = pad(&fit(&file.name, name), name);
        let bar = file.stat.map_or(String::new(), |stat| {
            bar(stat, room, most.unwrap_or(0), style)
        });
        let line = format!(" {shown} | {} {bar}", pad(&counts(file), number));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let all = files.iter().filter_map(|f| f.stat);
    let (added, removed) = all.fold((0, 0), |(a, r), s| (a + s.added, r + s.removed));
    let n = count(files.len(), "file", "files");
    out.push_str(&format_total(&n, Stat { added, removed }));
    out
}

fn format_total(files: &str, stat: Stat) -> String {
    let added = count(stat.added, "line", "lines");
    format!(" {files}, {added} added, {} removed\n", stat.removed)
}

fn lines(stat: Stat) -> usize {
    stat.added + stat.removed
}

/// As many signs as lines where they fit, else in proportion; what changed at all has at least one.
fn bar(stat: Stat, room: usize, most: usize, style: Style) -> String {
    let scaled = |n: usize| match most {
        0 => 0,
        m if m <= room => n,
        m => (n * room).div_ceil(m),
    };
    let added = scaled(stat.added).min(room);
    let removed = scaled(stat.removed).min(room.saturating_sub(added));
    let added = style.paint(Paint::Added, &"+".repeat(added));
    let removed = style.paint(Paint::Removed, &"-".repeat(removed));
    format!("{added}{removed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, added: usize, removed: usize) -> Counted {
        Counted {
            name: name.to_owned(),
            stat: Some(Stat { added, removed }),
            note: String::new(),
        }
    }

    #[test]
    fn bars_are_in_proportion_and_columns_straight() {
        let mut files = vec![file("src/a.rs", 3, 1), file("検査.md", 0, 2)];
        files.push(Counted {
            name: "logo.png".to_owned(),
            stat: None,
            note: "binary".to_owned(),
        });
        let want = " src/a.rs | +3 -1  +++-\n 検査.md  | +0 -2  --\n logo.png | binary\n 3 files, 3 lines added, 3 removed\n";
        assert_eq!(table(&files, Style::Plain, Some(60)), want);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let files = [file(&"d/".repeat(90), 9000, 1), file("b", 1, 0)];
        for width in [20, 30, 60, 200] {
            let text = table(&files, Style::Plain, Some(width));
            let fits = |l: &str| l.width() <= width || l.contains("files,");
            assert!(text.lines().all(fits), "{width}: {text}");
        }
        let text = table(&files, Style::Plain, Some(60));
        assert!(text.lines().nth(1).unwrap().ends_with('+'), "{text}");
    }

    #[test]
    fn nothing_is_a_line_too() {
        let text = table(&[], Style::Plain, None);
        assert_eq!(text, " 0 files, 0 lines added, 0 removed\n");
    }
}
