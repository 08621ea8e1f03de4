//! Asking a person, on standard error: a long list, a menu, a page with a question, yes or no. One trait, so that a test
//! can answer. The first three take the terminal's other screen, which leaves the user's own as it was; [`Ask::leave`]
//! gives it back, and so does going out of scope, by a panic too.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use console::Term;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use super::Style;
use super::list::{List, Pressed, Rows, Size};
use super::page::{self, Page};

/// What a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<T> {
    /// This.
    This(T),
    /// Nothing: back to where they came from.
    Back,
    /// Nothing: out of everything (Ctrl-C).
    Out,
}

/// Someone who can be asked.
pub trait Ask {
    /// Lets them choose a row; the cursor begins at `at`.
    ///
    /// # Errors
    /// The terminal is gone.
    fn choose(&mut self, title: &str, rows: &mut dyn Rows, at: usize) -> io::Result<Answer<usize>>;

    /// Lets them choose an entry; the first one is where the cursor begins.
    ///
    /// # Errors
    /// The terminal is gone.
    fn menu(&mut self, title: &str, entries: &[String]) -> io::Result<Answer<usize>>;

    /// Shows a text and lets them answer with one of its keys.
    ///
    /// # Errors
    /// The terminal is gone.
    fn page(&mut self, page: Page) -> io::Result<Answer<char>>;

    /// Asks yes or no, on the screen as it is. Enter alone means no.
    ///
    /// # Errors
    /// The terminal is gone.
    fn yes(&mut self, question: &str) -> io::Result<Answer<bool>>;

    /// Gives the user's own screen back.
    fn leave(&mut self);
}

/// The person at the terminal of this process.
#[derive(Debug)]
pub struct Terminal {
    term: Term,
    style: Style,
    other_screen: bool,
    /// How the terminal was before keys were taken one by one.
    before: Option<Termios>,
    /// Whether Ctrl-C ends the program at once, as it does wherever nothing is asked.
    deadly: Option<Arc<AtomicBool>>,
}

impl Terminal {
    /// The terminal on standard error.
    #[must_use]
    pub fn new(style: Style) -> Self {
        Self {
            term: Term::stderr(),
            style,
            other_screen: false,
            before: None,
            deadly: None,
        }
    }

    fn size(&self) -> Size {
        let (rows, columns) = self.term.size();
        Size {
            rows: rows.into(),
            columns: columns.into(),
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        if !self.other_screen {
            self.take_keys()?;
            self.other_screen = true;
            self.term.write_str("\x1b[?1049h")?;
        }
        self.term.write_str("\x1b[H\x1b[2J")?;
        self.term.flush()
    }

    fn draw(&self, lines: &[String]) -> io::Result<()> {
        // Between these two marks a terminal that knows them shows nothing half drawn.
        let mut text = String::from("\x1b[?2026h\x1b[?25l\x1b[H");
        text.push_str(&lines.join("\x1b[K\r\n"));
        text.push_str("\x1b[K\x1b[J\x1b[?2026l");
        self.term.write_str(&text)?;
        self.term.flush()
    }

    /// Takes the keys one by one, Ctrl-C among them, from here until [`Self::give_keys_back`]: between two keys too, so
    /// that none is lost, and none is echoed.
    fn take_keys(&mut self) -> io::Result<()> {
        self.hold()?.store(false, Ordering::SeqCst);
        let was = termios::tcgetattr(io::stdin())?;
        let mut keys = was.clone();
        keys.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        termios::tcsetattr(io::stdin(), OptionalActions::Drain, &keys)?;
        self.before.get_or_insert(was);
        Ok(())
    }

    fn give_keys_back(&mut self) {
        if let Some(before) = self.before.take() {
            // A terminal that is gone needs nothing back.
            let _ = self.term.show_cursor();
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Drain, &before);
        }
        if let Some(deadly) = &self.deadly {
            deadly.store(true, Ordering::SeqCst);
        }
    }

    /// Takes Ctrl-C as a signal into our hands: dialoguer turns the key into it, and others may send it. While the flag
    /// is down it only ends the question: the program ending there would leave the terminal with its cursor hidden, or
    /// on the other screen.
    fn hold(&mut self) -> io::Result<Arc<AtomicBool>> {
        if let Some(flag) = &self.deadly {
            return Ok(flag.clone());
        }
        let flag = Arc::new(AtomicBool::new(true));
        let signal = signal_hook::consts::SIGINT;
        signal_hook::flag::register_conditional_default(signal, flag.clone())?;
        Ok(self.deadly.insert(flag).clone())
    }

    /// Lets dialoguer ask.
    fn held<T>(
        &mut self,
        ask: impl FnOnce(&Term) -> dialoguer::Result<Option<T>>,
    ) -> io::Result<Answer<T>> {
        self.take_keys()?;
        let told = ask(&self.term);
        if !self.other_screen {
            self.give_keys_back();
        }
        match told {
            Ok(Some(answer)) => Ok(Answer::This(answer)),
            Ok(None) => Ok(Answer::Back),
            Err(dialoguer::Error::IO(e)) if e.kind() == io::ErrorKind::Interrupted => {
                // The question is still on its line.
                self.term.write_line("")?;
                Ok(Answer::Out)
            }
            Err(dialoguer::Error::IO(e)) => Err(e),
        }
    }
}

impl Ask for Terminal {
    fn choose(&mut self, title: &str, rows: &mut dyn Rows, at: usize) -> io::Result<Answer<usize>> {
        self.enter()?;
        let mut list = List::new(title, rows, at);
        loop {
            // Asked each time: the terminal may have been resized.
            let size = self.size();
            self.draw(&list.picture(rows, size, self.style))?;
            match list.press(&self.term.read_key_raw()?, size) {
                Pressed::Stay => {}
                Pressed::Chose(at) => return Ok(Answer::This(at)),
                Pressed::Back => return Ok(Answer::Back),
                Pressed::Out => return Ok(Answer::Out),
            }
        }
    }

    fn menu(&mut self, title: &str, entries: &[String]) -> io::Result<Answer<usize>> {
        self.enter()?;
        let columns = self.size().columns;
        for line in title.lines() {
            self.term.write_line(&super::text::fit(line, columns))?;
        }
        self.term.write_line("")?;
        // dialoguer cuts nothing, and counts a line that wraps as one.
        let room = columns.saturating_sub(4);
        let entries: Vec<_> = entries
            .iter()
            .map(|e| super::text::fit(e, room).into_owned())
            .collect();
        self.held(|term| {
            dialoguer::Select::new()
                .items(&entries)
                .default(0)
                .interact_on_opt(term)
        })
    }

    fn page(&mut self, mut page: Page) -> io::Result<Answer<char>> {
        self.enter()?;
        loop {
            let size = self.size();
            self.draw(&page.picture(size, self.style))?;
            match page.press(&self.term.read_key_raw()?, size) {
                page::Pressed::Stay => {}
                page::Pressed::Key(key) => return Ok(Answer::This(key)),
                page::Pressed::Back => return Ok(Answer::Back),
                page::Pressed::Out => return Ok(Answer::Out),
            }
        }
    }

    fn yes(&mut self, question: &str) -> io::Result<Answer<bool>> {
        self.held(|term| {
            dialoguer::Confirm::new()
                .with_prompt(question)
                .default(false)
                .interact_on_opt(term)
        })
    }

    fn leave(&mut self) {
        if self.other_screen {
            self.other_screen = false;
            // A terminal that is gone needs nothing back.
            let _ = self.term.write_str("\x1b[?1049l");
            let _ = self.term.flush();
        }
        self.give_keys_back();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}
