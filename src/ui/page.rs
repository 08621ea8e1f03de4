//! A text that may be longer than the screen, with a question below it that one key answers. State and picture;
//! [`super::ask`] holds the terminal. Enter is no answer: it goes back, so that nothing is done by pressing it again and
//! again.

use console::Key;

use super::list::Size;
use super::text::fit;
use super::{Paint, Style, sanitise};

/// A text and the keys that are asked for.
#[derive(Debug, Clone)]
pub struct Page {
    /// Lines that are safe for the terminal; too long ones go on in the next line.
    pub text: String,
    /// The question; empty where the text is only read.
    pub question: String,
    /// The keys that answer, each with what it does.
    pub keys: Vec<(char, String)>,
    top: usize,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// It moved the text, or meant nothing.
    Stay,
    /// It answers.
    Key(char),
    /// Back to where the user came from.
    Back,
    /// Out of everything.
    Out,
}

impl Page {
    /// A page at its first line.
    #[must_use]
    pub fn new(text: String, question: String, keys: Vec<(char, String)>) -> Self {
        Self {
            text,
            question,
            keys,
            top: 0,
        }
    }

    /// Takes a key; `size` is that of the last picture.
    pub fn press(&mut self, key: &Key, size: Size) -> Pressed {
        let view = view(size);
        let end = self.lines(size).saturating_sub(view);
        match key {
            Key::CtrlC => return Pressed::Out,
            Key::Enter | Key::Escape => return Pressed::Back,
            Key::Char(c) => {
                if let Some(key) = self.answer(*c) {
                    return Pressed::Key(key);
                }
                if *c == ' ' {
                    self.top = self.top.saturating_add(view).min(end);
                }
            }
            Key::ArrowUp => self.top = self.top.saturating_sub(1),
            Key::ArrowDown => self.top = (self.top + 1).min(end),
            Key::PageUp => self.top = self.top.saturating_sub(view),
            Key::PageDown => self.top = self.top.saturating_add(view).min(end),
            Key::Home => self.top = 0,
            Key::End => self.top = end,
            _ => {}
        }
        Pressed::Stay
    }

    fn answer(&self, typed: char) -> Option<char> {
        let lower = typed.to_lowercase().next()?;
        self.keys.iter().map(|(k, _)| *k).find(|k| *k == lower)
    }

    fn lines(&self, size: Size) -> usize {
        self.text
            .lines()
            .map(|l| {
                console::measure_text_width(l)
                    .div_ceil(size.columns.max(1))
                    .max(1)
            })
            .sum()
    }

    /// The picture, at most as many lines as the screen has.
    #[must_use]
    pub fn picture(&mut self, size: Size, style: Style) -> Vec<String> {
        let view = view(size);
        let folded = self.text.lines().flat_map(|l| fold(l, size.columns));
        let mut lines: Vec<String> = folded.skip(self.top).take(view).collect();
        lines.push(String::new());
        let below = self.lines(size).saturating_sub(self.top + view);
        let more = match below {
            0 => String::new(),
            n => format!("   ({n} more below)"),
        };
        let question = format!("{}{more}", sanitise(&self.question));
        lines.push(style.paint(Paint::Bold, &fit(&question, size.columns)));
        let keys = self.keys.iter().map(|(k, does)| format!("{k}: {does}"));
        let keys: Vec<String> = keys.chain(["esc: back".to_owned()]).collect();
        lines.push(style.paint(Paint::Dim, &fit(&keys.join("   "), size.columns)));
        let over = lines.len().saturating_sub(size.rows.max(1));
        lines.drain(..over);
        lines
    }
}

/// How many lines of the text are seen at once: all but the blank one, the question and the keys.
fn view(size: Size) -> usize {
    size.rows.saturating_sub(3).max(1)
}

/// Cuts a line into pieces as wide as the screen. Escape sequences of ours take no room and stay whole.
fn fold(line: &str, width: usize) -> Vec<String> {
    if width == 0 || console::measure_text_width(line) <= width {
        return vec![line.to_owned()];
    }
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for (part, escape) in console::AnsiCodeIterator::new(line) {
        for c in part.chars() {
            let wide = match unicode_width::UnicodeWidthChar::width(c) {
                Some(wide) if !escape => wide,
                _ => 0,
            };
            if used + wide > width {
                pieces.push(String::new());
                used = 0;
            }
            used += wide;
            if let Some(piece) = pieces.last_mut() {
                piece.push(c);
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        rows: 6,
        columns: 30,
    };

    fn page(lines: usize) -> Page {
        let text: Vec<String> = (0..lines).map(|n| format!("line {n}")).collect();
        let keys = vec![('y', "go".to_owned()), ('d', "diff".to_owned())];
        Page::new(text.join("\n"), "Go there?".to_owned(), keys)
    }

    #[test]
    fn a_long_text_scrolls_above_the_question() {
        let mut page = page(7);
        page.press(&Key::PageDown, SIZE);
        page.press(&Key::ArrowUp, SIZE);
        let picture = page.picture(SIZE, Style::Plain).join("\n");
        insta::assert_snapshot!(picture, @r"
        line 2
        line 3
        line 4

        Go there?   (2 more below)
        y: go   d: diff   esc: back
        ");
        page.press(&Key::End, SIZE);
        assert!(
            page.picture(SIZE, Style::Plain)
                .contains(&"line 6".to_owned())
        );
        page.press(&Key::PageDown, SIZE);
        assert!(
            page.picture(SIZE, Style::Plain)
                .contains(&"line 6".to_owned())
        );
    }

    #[test]
    fn only_the_keys_that_are_named_answer_and_enter_is_none_of_them() {
        let mut page = page(1);
        assert_eq!(page.press(&Key::Char('Y'), SIZE), Pressed::Key('y'));
        assert_eq!(page.press(&Key::Char('d'), SIZE), Pressed::Key('d'));
        assert_eq!(page.press(&Key::Char('x'), SIZE), Pressed::Stay);
        assert_eq!(page.press(&Key::Enter, SIZE), Pressed::Back);
        assert_eq!(page.press(&Key::Escape, SIZE), Pressed::Back);
        assert_eq!(page.press(&Key::CtrlC, SIZE), Pressed::Out);
    }

    #[test]
    fn long_lines_go_on_in_the_next_and_escapes_take_no_room() {
        assert_eq!(fold("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(fold("検査検", 4), ["検査", "検"]);
        assert_eq!(fold("\x1b[31mabcd\x1b[0m", 4), ["\x1b[31mabcd\x1b[0m"]);
        assert_eq!(
            fold("\x1b[31mabcde\x1b[0m", 4),
            ["\x1b[31mabcd", "e\x1b[0m"]
        );
    }

    #[test]
    fn the_question_is_seen_on_the_smallest_screen() {
        for rows in 0..5 {
            let size = Size { rows, columns: 20 };
            let picture = page(9).picture(size, Style::Plain);
            assert!(picture.len() <= rows.max(1), "{picture:?}");
        }
        let picture = page(9).picture(
            Size {
                rows: 2,
                columns: 40,
            },
            Style::Plain,
        );
        assert!(picture[0].starts_with("Go there?"), "{picture:?}");
    }
}
