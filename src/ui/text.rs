//! Tables of text whose columns stay straight, whatever the width of the characters in them. Cells are sanitised when
//! they are made, so no table can carry an escape sequence from a session to the terminal.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Paint, Style, sanitise};

/// Between two columns.
const GAP: &str = "  ";
/// Before a column that gives way is narrower than this, others are left out.
const LEAST: usize = 16;

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Words, from the left.
    Left(&'static str),
    /// Numbers, to the right.
    Right(&'static str),
    /// Words that are cut with `…` where the line would be too long. At most one column of a table. Where hardly anything
    /// would be left of them, the columns behind the first one are left out.
    Fitted(&'static str),
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Left(h) | Self::Right(h) | Self::Fitted(h) => h,
        }
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// A cell with that text, made safe.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::painted(text, Paint::Plain)
    }

    /// A cell with a mark.
    #[must_use]
    pub fn painted(text: impl AsRef<str>, paint: Paint) -> Self {
        Self {
            text: sanitise(text.as_ref()).into_owned(),
            paint,
        }
    }
}

/// Rows of cells under heads.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells that are missing are empty; cells beyond the last column are not shown.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, one line a row, under a line of heads where any column has one. Lines are fitted to the width
    /// if there is one.
    #[must_use]
    pub fn text(&self, style: Style, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let mut text = String::new();
        if self.columns.iter().any(|c| !c.head().is_empty()) {
            let heads: Vec<Cell> = self
                .columns
                .iter()
                .map(|c| Cell::painted(c.head(), Paint::Dim))
                .collect();
            self.line(&heads, &widths, style, &mut text);
        }
        for row in &self.rows {
            self.line(row, &widths, style, &mut text);
        }
        text
    }

    /// The width of each column; `None` for one that is left out.
    fn widths(&self, limit: Option<usize>) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = self
            .columns
            .iter()
            .map(|c| Some(c.head().width()))
            .collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(Some(cell.text.width()));
            }
        }
        let is_fitted = |c: &Column| matches!(c, Column::Fitted(_));
        let fitted = self.columns.iter().position(is_fitted);
        let (Some(limit), Some(fitted)) = (limit, fitted) else {
            return widths;
        };
        let words = widths.get(fitted).copied().flatten().unwrap_or(0);
        // What stands between the number and the words goes first, then the words.
        let mut rest = without(&widths, fitted);
        for at in 1..widths.len() {
            if rest + LEAST.min(words) <= limit {
                break;
            }
            if at != fitted
                && let Some(width) = widths.get_mut(at)
            {
                *width = None;
                rest = without(&widths, fitted);
            }
        }
        if let Some(width) = widths.get_mut(fitted) {
            *width = Some(words.min(limit.saturating_sub(rest).max(1)));
        }
        widths
    }

    fn line(&self, cells: &[Cell], widths: &[Option<usize>], style: Style, text: &mut String) {
        let empty = Cell::new("");
        let start = text.len();
        let cells = cells.iter().chain(std::iter::repeat(&empty));
        for ((column, width), cell) in self.columns.iter().zip(widths).zip(cells) {
            let Some(width) = width else { continue };
            if text.len() > start {
                text.push_str(GAP);
            }
            let shown = fit(&cell.text, *width);
            let pad = " ".repeat(width.saturating_sub(shown.width()));
            let painted = style.paint(cell.paint, &shown);
            match column {
                Column::Right(_) => text.extend([pad, painted]),
                Column::Left(_) | Column::Fitted(_) => text.extend([painted, pad]),
            }
        }
        let end = text.trim_end_matches(' ').len().max(start);
        text.truncate(end);
        text.push('\n');
    }
}

/// The columns that a line takes without one of the cells, with the gap before that.
fn without(widths: &[Option<usize>], cell: usize) -> usize {
    let others = widths.iter().enumerate().filter(|(at, _)| *at != cell);
    others.filter_map(|(_, w)| *w).map(|w| w + GAP.len()).sum()
}

/// Cuts a text with `…` so that it takes at most that many columns.
#[must_use]
pub fn fit(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let Some(room) = width.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let mut used = 0;
    let kept = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .map(char::len_utf8)
        .sum();
    // A sum of the lengths of whole characters is a boundary.
    let kept = text.get(..kept).unwrap_or_default();
    // A character that joins what is not there any more would join the sign of the cut.
    let kept = kept.trim_end_matches(['\u{200d}', '\u{fe0f}']);
    Cow::Owned(format!("{kept}…"))
}

/// A text with blanks behind it, so that it takes that many columns; a longer one as it is.
#[must_use]
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// A length in bytes with at most four digits: `999 B`, `1.2 KB`, `34 MB`; units of a thousand.
#[must_use]
pub fn size(bytes: u64) -> String {
    let mut unit = 1_000;
    for name in ["KB", "MB", "GB", "TB", "PB"] {
        if bytes < unit {
            break;
        }
        let tenths = bytes / (unit / 10);
        if tenths < 100 {
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
        if tenths < 10_000 {
            return format!("{} {name}", tenths / 10);
        }
        unit = unit.saturating_mul(1_000);
    }
    match bytes {
        0..1_000 => format!("{bytes} B"),
        _ => format!("{} EB", bytes / 1_000_000_000_000_000_000),
    }
}

/// A number and its noun: `1 file`, `2 files`.
#[must_use]
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_four_digits_at_most() {
        let all = [
            0,
            999,
            1_000,
            1_949,
            9_999,
            10_000,
            999_999,
            1_000_000,
            1_253_000_000,
            u64::MAX,
        ];
        let told = all.map(size);
        assert_eq!(
            told,
            [
                "0 B", "999 B", "1.0 KB", "1.9 KB", "9.9 KB", "10 KB", "999 KB", "1.0 MB",
                "1.2 GB", "18 EB"
            ]
        );
    }

    fn table() -> Table {
        let mut table = Table::new([
            Column::Right("turn"),
            Column::Fitted("prompt"),
            Column::Left("files"),
        ]);
        table.row([
            Cell::new("0"),
            Cell::new("add a total"),
            Cell::new("src/a.rs"),
        ]);
        table.row([Cell::new("10"), Cell::new("検査を直す 🎉"), Cell::new("b")]);
        table
    }

    #[test]
    fn columns_stay_straight_with_wide_characters() {
        let want =
            "turn  prompt         files\n   0  add a total    src/a.rs\n  10  検査を直す 🎉  b\n";
        assert_eq!(table().text(Style::Plain, None), want);
    }

    #[test]
    fn the_fitted_column_gives_way_and_no_other() {
        let mut table = table();
        table.row([
            Cell::new("11"),
            Cell::new("x".repeat(90)),
            Cell::new("src/c.rs"),
        ]);
        let text = table.text(Style::Plain, Some(40));
        assert!(text.lines().all(|l| l.width() <= 40), "{text}");
        assert!(text.contains("…  src/c.rs"), "{text}");
        assert!(text.contains("add a total"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_still_shows_some_of_the_prompt() {
        let mut table = table();
        table.row([Cell::new("11"), Cell::new("y".repeat(90)), Cell::new("z")]);
        let text = table.text(Style::Plain, Some(20));
        assert!(text.contains(&"y".repeat(13)), "{text}");
        assert!(!text.contains('z'), "{text}");
        assert!(text.lines().all(|l| l.width() <= 20), "{text}");
        assert!(table.text(Style::Plain, Some(0)).contains("11"));
    }

    #[test]
    fn a_cell_cannot_break_the_table_or_the_terminal() {
        let mut table = Table::new([Column::Left(""), Column::Left("")]);
        table.row([Cell::new("a\nb\x1b[2J"), Cell::new("c")]);
        assert_eq!(table.text(Style::Plain, None), "a\\nb\\u{1b}[2J  c\n");
    }

    #[test]
    fn colour_changes_no_column() {
        let mut table = Table::new([Column::Left(""), Column::Left("")]);
        table.row([Cell::painted("ab", Paint::Added), Cell::new("c")]);
        table.row([Cell::new("abcd"), Cell::new("d")]);
        let text = table.text(Style::Coloured, None);
        assert_eq!(text, "\x1b[32mab\x1b[0m    c\nabcd  d\n");
    }

    #[test]
    fn missing_cells_are_empty_and_extra_ones_are_not_shown() {
        let mut table = Table::new([Column::Left(""), Column::Left("")]);
        table.row([Cell::new("a")]);
        table.row([Cell::new("a"), Cell::new("b"), Cell::new("c")]);
        assert_eq!(table.text(Style::Plain, None), "a\na  b\n");
    }

    #[test]
    fn fit_counts_columns_and_never_cuts_a_character() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("検査", 3), "検…");
        assert_eq!(fit("検査", 2), "…");
        assert_eq!(fit("a", 0), "");
        assert_eq!(fit("👩\u{200d}👩\u{200d}👧 and on", 4), "👩…");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "file", "files"), "1 file");
        assert_eq!(count(0, "file", "files"), "0 files");
    }
}
