//! A long list to choose from: what is typed filters it, arrows move, and only the rows in view are asked for, so that
//! ten thousand are as quick as ten. State and picture; [`super::ask`] holds the terminal. dialoguer's own list begins
//! at its first row whatever the default is, and its picture breaks when the terminal is made narrower.

use console::Key;

use super::text::fit;
use super::{Paint, Style, sanitise};

/// What can be chosen from.
pub trait Rows {
    /// How many there are.
    fn count(&self) -> usize;
    /// What a filter looks in.
    fn words(&self, at: usize) -> String;
    /// The line above the rows; may be empty.
    fn heads(&self, width: usize) -> String;
    /// A row as it is shown, safe for the terminal and at most that wide.
    fn row(&mut self, at: usize, width: usize) -> String;
}

/// The size of the screen, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// It moved or filtered, or meant nothing.
    Stay,
    /// This row was chosen, by its number among all.
    Chose(usize),
    /// Back to where the user came from.
    Back,
    /// Out of everything.
    Out,
}

/// The list, as far as the user has come with it.
#[derive(Debug)]
pub struct List {
    title: String,
    words: Vec<String>,
    filter: String,
    shown: Vec<usize>,
    cursor: usize,
    top: usize,
}

/// Lines that are no rows: title, filter, heads, keys.
const AROUND: usize = 4;
/// What stands before a row.
const MARK: usize = 2;

impl List {
    /// A list with the cursor at that row.
    #[must_use]
    pub fn new(title: &str, rows: &dyn Rows, at: usize) -> Self {
        let words = (0..rows.count()).map(|i| rows.words(i).to_lowercase());
        Self {
            title: title.to_owned(),
            words: words.collect(),
            filter: String::new(),
            shown: (0..rows.count()).collect(),
            cursor: at.min(rows.count().saturating_sub(1)),
            top: 0,
        }
    }

    /// Takes a key; `size` is that of the last picture.
    pub fn press(&mut self, key: &Key, size: Size) -> Pressed {
        let page = view(size).max(1);
        let last = self.shown.len().saturating_sub(1);
        match key {
            Key::Enter => match self.shown.get(self.cursor) {
                Some(row) => return Pressed::Chose(*row),
                None => return Pressed::Stay,
            },
            Key::CtrlC => return Pressed::Out,
            Key::Escape if self.filter.is_empty() => return Pressed::Back,
            Key::Escape => self.filtered(String::new()),
            Key::ArrowUp | Key::BackTab => self.cursor = self.cursor.saturating_sub(1),
            Key::ArrowDown | Key::Tab => self.cursor = (self.cursor + 1).min(last),
            Key::PageUp => self.cursor = self.cursor.saturating_sub(page),
            Key::PageDown => self.cursor = self.cursor.saturating_add(page).min(last),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = last,
            Key::Backspace => {
                let mut filter = self.filter.clone();
                filter.pop();
                self.filtered(filter);
            }
            Key::Char(c) if !c.is_control() => self.filtered(format!("{}{c}", self.filter)),
            _ => {}
        }
        Pressed::Stay
    }

    /// Every word of the filter must stand in a row. The cursor stays on its row where that is still shown, else it
    /// goes to the last one.
    fn filtered(&mut self, filter: String) {
        let at = self.shown.get(self.cursor).copied();
        let lower = filter.to_lowercase();
        let wanted: Vec<&str> = lower.split_whitespace().collect();
        let fits = |words: &String| wanted.iter().all(|w| words.contains(w));
        let all = self.words.iter().enumerate();
        self.shown = all.filter(|(_, w)| fits(w)).map(|(at, _)| at).collect();
        self.filter = filter;
        let same = at.and_then(|at| self.shown.iter().position(|s| *s == at));
        self.cursor = same.unwrap_or(self.shown.len().saturating_sub(1));
    }

    /// The picture, at most as many lines as the screen has, none wider than it.
    #[must_use]
    pub fn picture(&mut self, rows: &mut dyn Rows, size: Size, style: Style) -> Vec<String> {
        let width = size.columns;
        let mut lines = vec![style.paint(Paint::Bold, &fit(&sanitise(&self.title), width))];
        let filter = match self.filter.as_str() {
            "" => style.paint(Paint::Dim, &fit("type to filter", width)),
            f => fit(&format!("filter: {}", sanitise(f)), width).into_owned(),
        };
        lines.push(filter);
        let room = width.saturating_sub(MARK);
        let heads = format!("  {}", rows.heads(room));
        lines.push(style.paint(Paint::Dim, heads.trim_end()));
        let view = view(size);
        self.top = self.top.min(self.cursor);
        self.top = self.top.max((self.cursor + 1).saturating_sub(view));
        // After a filter is taken back the rows fill the screen again.
        self.top = self.top.min(self.shown.len().saturating_sub(view));
        let seen = self.shown.iter().enumerate().skip(self.top).take(view);
        for (at, row) in seen {
            let mark = if at == self.cursor { "> " } else { "  " };
            let mark = style.paint(Paint::Id, mark);
            lines.push(format!("{mark}{}", rows.row(*row, room)));
        }
        if self.shown.is_empty() {
            lines.push(fit("  nothing fits", width).into_owned());
        }
        lines.push(style.paint(Paint::Dim, &fit(&self.keys(), width)));
        lines.truncate(size.rows.max(1));
        lines
    }

    fn keys(&self) -> String {
        let (all, shown) = (self.words.len(), self.shown.len());
        let at = (self.cursor + 1).min(shown);
        let of = if shown == all {
            format!("{at} of {all}")
        } else {
            format!("{at} of {shown} that fit")
        };
        format!("enter: choose   esc: back   {of}")
    }
}

/// How many rows are seen at once.
fn view(size: Size) -> usize {
    size.rows.saturating_sub(AROUND).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbered rows that tell which of them were asked for.
    struct Numbers(usize, Vec<usize>);

    impl Rows for Numbers {
        fn count(&self) -> usize {
            self.0
        }
        fn words(&self, at: usize) -> String {
            format!("Row {at}")
        }
        fn heads(&self, _: usize) -> String {
            "row".to_owned()
        }
        fn row(&mut self, at: usize, width: usize) -> String {
            self.1.push(at);
            fit(&format!("row {at}"), width).into_owned()
        }
    }

    const SIZE: Size = Size {
        rows: 8,
        columns: 48,
    };

    fn list(n: usize) -> (List, Numbers) {
        let rows = Numbers(n, Vec::new());
        (
            List::new("the rows", &rows, n.saturating_sub(1)),
            Numbers(n, Vec::new()),
        )
    }

    #[test]
    fn the_cursor_begins_at_its_row_and_only_rows_in_view_are_asked_for() {
        let (mut list, mut rows) = list(10_000);
        let picture = list.picture(&mut rows, SIZE, Style::Plain).join("\n");
        insta::assert_snapshot!(picture, @r"
        the rows
        type to filter
          row
          row 9996
          row 9997
          row 9998
        > row 9999
        enter: choose   esc: back   10000 of 10000
        ");
        assert_eq!(rows.1, [9996, 9997, 9998, 9999]);
    }

    #[test]
    fn what_is_typed_filters_and_esc_takes_the_filter_back_first() {
        let (mut list, mut rows) = list(200);
        for c in "ROW 19".chars() {
            assert_eq!(list.press(&Key::Char(c), SIZE), Pressed::Stay);
        }
        let picture = list.picture(&mut rows, SIZE, Style::Plain).join("\n");
        insta::assert_snapshot!(picture, @r"
        the rows
        filter: ROW 19
          row
          row 196
          row 197
          row 198
        > row 199
        enter: choose   esc: back   12 of 12 that fit
        ");
        list.press(&Key::Home, SIZE);
        assert_eq!(list.press(&Key::Enter, SIZE), Pressed::Chose(19));
        assert_eq!(list.press(&Key::Escape, SIZE), Pressed::Stay);
        assert_eq!(list.press(&Key::Enter, SIZE), Pressed::Chose(19));
        assert_eq!(list.press(&Key::Escape, SIZE), Pressed::Back);
        assert_eq!(list.press(&Key::CtrlC, SIZE), Pressed::Out);
    }

    #[test]
    fn nothing_that_fits_can_be_chosen() {
        let (mut list, mut rows) = list(3);
        list.press(&Key::Char('x'), SIZE);
        assert_eq!(list.press(&Key::Enter, SIZE), Pressed::Stay);
        let picture = list.picture(&mut rows, SIZE, Style::Plain);
        assert!(
            picture.contains(&"  nothing fits".to_owned()),
            "{picture:?}"
        );
        list.press(&Key::Backspace, SIZE);
        assert_eq!(list.press(&Key::Enter, SIZE), Pressed::Chose(2));
    }

    #[test]
    fn keys_stop_at_both_ends() {
        let (mut list, _) = list(6);
        for (key, want) in [
            (Key::ArrowDown, 5),
            (Key::ArrowUp, 4),
            (Key::PageUp, 0),
            (Key::ArrowUp, 0),
            (Key::PageDown, 4),
            (Key::PageDown, 5),
            (Key::Home, 0),
            (Key::End, 5),
        ] {
            list.press(&key, SIZE);
            assert_eq!(
                list.press(&Key::Enter, SIZE),
                Pressed::Chose(want),
                "{key:?}"
            );
        }
    }

    #[test]
    fn no_screen_is_too_small_and_none_too_large() {
        use unicode_width::UnicodeWidthStr;
        for (rows, columns) in [(1, 1), (2, 20), (3, 20), (5, 20), (200, 400), (0, 0)] {
            let (mut list, mut numbers) = list(30);
            let size = Size { rows, columns };
            let picture = list.picture(&mut numbers, size, Style::Plain);
            assert!(picture.len() <= rows.max(1), "{rows} {picture:?}");
            let least = columns.max(MARK);
            assert!(picture.iter().all(|l| l.width() <= least), "{picture:?}");
        }
    }

    #[test]
    fn an_empty_list_has_nothing_to_choose() {
        let (mut list, mut rows) = list(0);
        assert_eq!(list.press(&Key::Enter, SIZE), Pressed::Stay);
        assert_eq!(list.press(&Key::ArrowDown, SIZE), Pressed::Stay);
        assert!(list.picture(&mut rows, SIZE, Style::Plain).len() <= SIZE.rows);
    }
}
