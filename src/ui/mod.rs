//! The only place that prints. Standard output carries data, standard error carries talk; both decide on colour once.
//! Prompts, file names and commands are hostile text: they come from files that anybody may have written, so they reach
//! a terminal only through [`sanitise`] or [`path_text`].
//! Does not cover what a command says; it composes text, and this prints it.

pub mod ask;
pub mod diff;
pub mod json;
pub mod json_events;
mod json_setup;
mod json_stores;
pub mod list;
pub mod page;
mod pager;
pub mod progress;
mod style;
pub mod text;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::env::Env;
use crate::error::{Error, Kind};

use progress::Progress;
pub use style::{Colour, Paint, Style};

/// How much to say on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Talk {
    /// Errors only.
    Quiet,
    /// What a person wants to know.
    #[default]
    Normal,
    /// Details.
    Verbose,
    /// Everything.
    All,
}

/// The two streams of a run.
pub struct Ui {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    style: Style,
    err_style: Style,
    width: Option<usize>,
    talk: Talk,
    draws: bool,
    interactive: bool,
    pager: Option<pager::Pager>,
}

impl std::fmt::Debug for Ui {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ui")
            .field("style", &self.style)
            .field("width", &self.width)
            .field("talk", &self.talk)
            .finish_non_exhaustive()
    }
}

impl Ui {
    /// The streams of this process.
    #[must_use]
    pub fn of_process(env: &Env, colour: Colour, talk: Talk) -> Self {
        let out = Box::new(BufWriter::with_capacity(64 << 10, io::stdout()));
        Self::new(env, colour, talk, out, Box::new(io::stderr()))
    }

    /// Streams of the caller's.
    #[must_use]
    pub fn new(
        env: &Env,
        colour: Colour,
        talk: Talk,
        out: Box<dyn Write>,
        err: Box<dyn Write>,
    ) -> Self {
        let asked = style::asked(colour, env);
        let of_tty = |tty| if tty { Style::Coloured } else { Style::Plain };
        let style = |tty| asked.unwrap_or_else(|| of_tty(tty));
        Self {
            out,
            err,
            style: style(env.tty),
            // Whether standard error alone is a terminal is not known: with input from a pipe the talk is plain.
            err_style: style(env.interactive),
            width: env.columns.map(usize::from).filter(|w| *w > 0),
            talk,
            draws: env.interactive && talk >= Talk::Normal && !style::is_dumb(env),
            interactive: env.interactive,
            pager: None,
        }
    }

    /// How standard output takes colour.
    #[must_use]
    pub fn style(&self) -> Style {
        self.style
    }

    /// How standard error takes colour.
    #[must_use]
    pub fn err_style(&self) -> Style {
        self.err_style
    }

    /// The width that text is fitted to; `None` where lines may have any length.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// How much to say.
    #[must_use]
    pub fn talk(&self) -> Talk {
        self.talk
    }

    /// Prints data as it is.
    ///
    /// # Errors
    /// Standard output cannot be written. A reader that went away is [`io::ErrorKind::BrokenPipe`]; see [`quiet_pipe`].
    pub fn print(&mut self, data: impl AsRef<[u8]>) -> io::Result<()> {
        match &mut self.pager {
            Some(pager) => pager.print(data.as_ref()),
            None => self.out.write_all(data.as_ref()),
        }
    }

    /// Prints a line of data.
    ///
    /// # Errors
    /// As [`Ui::print`].
    pub fn line(&mut self, data: impl AsRef<[u8]>) -> io::Result<()> {
        self.print(data)?;
        self.print(b"\n")
    }

    /// From here on what is printed goes through the user's pager, where a person looks at it.
    pub fn open_pager(&mut self, env: &Env, unwanted: bool) {
        if env.tty && !unwanted {
            self.pager = pager::Pager::start(env);
        }
    }

    /// Waits until the user has read it.
    pub fn close_pager(&mut self) {
        if let Some(pager) = self.pager.take() {
            pager.wait();
        }
    }

    /// Writes out what is buffered. Only then is it known that the data arrived.
    ///
    /// # Errors
    /// As [`Ui::print`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Says a line, unless quiet. The text is composed of our words and sanitised ones; what slipped through is made
    /// visible here.
    pub fn say(&mut self, words: &str) {
        if self.talk >= Talk::Normal {
            self.talk_line(&sanitise_lines(words));
        }
    }

    /// Says a line that only `-v` asks for.
    pub fn detail(&mut self, words: &str) {
        if self.talk >= Talk::Verbose {
            self.talk_line(&sanitise_lines(words));
        }
    }

    /// Shows how a piece of work comes on, once it has taken a while; `total` is the number of its parts.
    pub fn progress(&self, what: &'static str, total: Option<u64>) -> Progress {
        if self.draws {
            Progress::start(what, total)
        } else {
            Progress::unseen()
        }
    }

    /// Whether anybody sees progress.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// Warns, unless quiet.
    pub fn warn(&mut self, words: &str) {
        self.marked((Paint::Warning, "warning:"), words);
    }

    /// Names the next step, unless quiet.
    pub fn hint(&mut self, words: &str) {
        self.marked((Paint::Place, "hint:"), words);
    }

    fn marked(&mut self, (paint, mark): (Paint, &str), words: &str) {
        if self.talk >= Talk::Normal {
            let mark = self.err_style.paint(paint, mark);
            self.talk_line(&format!("{mark} {}", sanitise_lines(words)));
        }
    }

    /// Says an error in its four parts: what failed, on which paths, what was and was not changed, what to do next.
    /// Quiet does not silence it.
    pub fn error(&mut self, error: &Error) {
        let text = error_text(error, self.err_style);
        self.talk_line(text.trim_end_matches('\n'));
    }

    /// Says an error as data, on the stream of talk. Quiet does not silence it.
    pub fn tell_json(&mut self, json: &str) {
        self.talk_line(json);
    }

    /// Asks the terminal to put a text on the clipboard (OSC 52). It gives no answer, so nothing more can be said.
    pub fn copy(&mut self, text: &str) {
        use base64::Engine as _;
        if !self.interactive {
            self.warn("there is no terminal to put the prompt on the clipboard");
            return;
        }
        let coded = base64::engine::general_purpose::STANDARD.encode(text);
        self.tell(&format!("\x1b]52;c;{coded}\x07"));
        self.say("asked the terminal to put the prompt on the clipboard; not every terminal does");
    }

    fn talk_line(&mut self, words: &str) {
        // What was printed before stands before it on a terminal. A failure shows again in `finish`.
        let _ = self.out.flush();
        self.tell(&format!("{words}\n"));
    }

    /// Talk that cannot be heard must not stop the work that it is about.
    fn tell(&mut self, words: &str) {
        let _ = self.err.write_all(words.as_bytes());
        let _ = self.err.flush();
    }
}

/// Says what clap found wrong with the arguments, or prints the help that was asked for; returns the exit code.
#[must_use]
pub fn usage(error: &clap::Error) -> u8 {
    // A closed pipe behind `--help` is no failure; nothing else was to be done.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// As [`usage`], as the JSON that was asked for.
#[must_use]
pub fn usage_json(error: &clap::Error) -> u8 {
    let text = error.to_string();
    let (what, _) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
    let line = |l: &str| l.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = |l: &String| !l.is_empty() && !l.starts_with("For more information");
    let lines: Vec<String> = what.lines().map(line).filter(says).collect();
    let (tips, words): (Vec<_>, Vec<_>) = lines.iter().partition(|l| l.starts_with("tip: "));
    let words: Vec<&str> = words.into_iter().map(String::as_str).collect();
    let message = words.join(" ").trim_start_matches("error: ").to_owned();
    let mut usage = Error::new(Kind::Usage, message);
    for tip in tips {
        usage = usage.hint(tip.trim_start_matches("tip: "));
    }
    let usage = usage.hint("`rewind --help` tells what there is");
    let _ = writeln!(io::stderr(), "{}", json::text(&json::ErrorOut::new(&usage)));
    usage.kind.code()
}

/// Prints the answer that an agent waits for. Nobody could be told that it was not taken.
pub fn answer(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Says an error that came before there were streams; returns the exit code.
#[must_use]
pub fn lost(error: &Error) -> u8 {
    let _ = io::stderr().write_all(error_text(error, Style::Plain).as_bytes());
    error.kind.code()
}

/// Takes a reader that went away for what it is: no failure of ours.
///
/// # Errors
/// Every other error, as it came.
pub fn quiet_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// An error as text, one part a line.
#[must_use]
pub fn error_text(error: &Error, style: Style) -> String {
    let mut text = String::new();
    let mark = style.paint(Paint::Removed, "error:");
    // Writing to a string does not fail.
    let _ = writeln!(text, "{mark} {}", sanitise(&error.message));
    for (path, words) in &error.paths {
        let _ = write!(text, "  {}", path_text(path));
        if !words.is_empty() {
            let _ = write!(text, ": {}", sanitise(words));
        }
        text.push('\n');
    }
    if !error.changed.is_empty() {
        let _ = writeln!(text, "{}", sanitise(&error.changed));
    }
    for hint in &error.hints {
        let mark = style.paint(Paint::Place, "hint:");
        let _ = writeln!(text, "{mark} {}", sanitise(hint));
    }
    text
}

/// A text on one line, with all that a terminal would act upon or hide made visible: control characters, line ends,
/// characters that turn the direction of writing, characters without a shape.
#[must_use]
pub fn sanitise(text: &str) -> Cow<'_, str> {
    visible(text, Joiners::Kept, &[])
}

/// A text of several lines: as [`sanitise`], but line ends and tabs do what they do.
#[must_use]
pub fn sanitise_lines(text: &str) -> Cow<'_, str> {
    let text: Cow<'_, str> = if text.contains("\r\n") {
        text.replace("\r\n", "\n").into()
    } else {
        text.into()
    };
    match text {
        Cow::Borrowed(t) => visible(t, Joiners::Kept, &['\n', '\t']),
        Cow::Owned(t) => visible(&t, Joiners::Kept, &['\n', '\t'])
            .into_owned()
            .into(),
    }
}

/// A path as it can be read and told from every other path: as it is where all of it is visible, else in quotes with
/// escapes. Bytes that are no UTF-8 are written as `\xff`.
#[must_use]
pub fn path_text(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    if let Some(text) = path.to_str()
        && is_plain_name(text)
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let escaped = chunk.valid().replace('\\', "\\\\").replace('"', "\\\"");
        quoted.push_str(&visible(&escaped, Joiners::Escaped, &[]));
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(quoted, "\\x{byte:02x}");
        }
    }
    quoted.push('"');
    quoted
}

/// A name that needs no quotes: nothing hidden, no blank at an end that nobody would see, no quote to be taken for ours.
fn is_plain_name(text: &str) -> bool {
    matches!(visible(text, Joiners::Escaped, &[]), Cow::Borrowed(_))
        && !text.is_empty()
        && text.trim() == text
        && !text.starts_with('"')
}

/// What becomes of the characters that join their neighbours: emoji and several scripts need them in running text, and
/// two file names that differ by one of them look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joiners {
    Kept,
    Escaped,
}

fn visible<'a>(text: &'a str, joiners: Joiners, kept: &[char]) -> Cow<'a, str> {
    let mut out = String::new();
    let mut done = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        // A joiner behind ASCII joins nothing; it is there to hide.
        let joins = joiners == Joiners::Kept && is_joiner(c) && !before.is_ascii();
        if is_hidden(c) && !joins && !kept.contains(&c) {
            out.push_str(text.get(done..at).unwrap_or_default());
            escape(c, &mut out);
            done = at + c.len_utf8();
        }
        before = c;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

fn escape(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ => out.extend(c.escape_unicode()),
    }
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Characters that a terminal acts upon, or that have no shape of their own.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction of writing.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line ends that are no control characters.
            | '\u{2028}' | '\u{2029}'
            // Blank or invisible.
            | '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// How long ago a time was, in words; a time long ago or yet to come as a date.
#[must_use]
pub fn age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds();
    // The clock of another machine may be a little ahead.
    match seconds {
        -60..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..172_800 => "1 day ago".to_owned(),
        172_800..2_592_000 => format!("{} days ago", seconds / 86_400),
        _ => at.format("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests;
