//! Colour: when it is used, and the roles that it marks. What a text means never depends on it.

use crate::env::Env;

/// When to use colour, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// As the terminal and the variables say.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The roles that colour marks. What a text means never depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// No mark.
    #[default]
    Plain,
    /// A heading.
    Bold,
    /// Of less weight.
    Dim,
    /// An id or a number that can be typed back.
    Id,
    /// Added, or good.
    Added,
    /// Removed, or bad.
    Removed,
    /// A warning.
    Warning,
    /// A place in a file.
    Place,
}

/// Whether a stream takes colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// No escape sequence ever.
    Plain,
    /// With escape sequences.
    Coloured,
}

impl Style {
    /// Marks a text, which must be free of control characters.
    #[must_use]
    pub fn paint(self, paint: Paint, text: &str) -> String {
        match paint {
            Paint::Plain => text.to_owned(),
            _ => self.styled(paint).apply_to(text).to_string(),
        }
    }

    /// As [`Self::paint`], and standing out from the text around it.
    #[must_use]
    pub fn stress(self, paint: Paint, text: &str) -> String {
        self.styled(paint).reverse().apply_to(text).to_string()
    }

    fn styled(self, paint: Paint) -> console::Style {
        let plain = console::Style::new();
        let style = match paint {
            Paint::Plain => plain,
            Paint::Bold => plain.bold(),
            Paint::Dim => plain.dim(),
            Paint::Id => plain.yellow(),
            Paint::Added => plain.green(),
            Paint::Removed => plain.red(),
            Paint::Warning => plain.yellow().bold(),
            Paint::Place => plain.cyan(),
        };
        style.force_styling(self == Self::Coloured)
    }
}

/// What flags and variables say of colour; `None` leaves it to whether the stream is a terminal.
pub(super) fn asked(colour: Colour, env: &Env) -> Option<Style> {
    let is = |name: &str, value: &str| env.var(name).is_some_and(|v| v == value);
    match colour {
        Colour::Always => Some(Style::Coloured),
        Colour::Never => Some(Style::Plain),
        Colour::Auto if env.var("NO_COLOR").is_some() => Some(Style::Plain),
        Colour::Auto if env.var("CLICOLOR_FORCE").is_some() && !is("CLICOLOR_FORCE", "0") => {
            Some(Style::Coloured)
        }
        Colour::Auto if is_dumb(env) => Some(Style::Plain),
        Colour::Auto => None,
    }
}

/// Whether the terminal acts upon no escape sequence.
pub(super) fn is_dumb(env: &Env) -> bool {
    env.var("TERM").is_some_and(|term| term == "dumb")
}
