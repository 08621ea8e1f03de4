//! Asks a person yes or no, on standard error. Enter alone means no.

/// Asks; anything but a clear yes is a no, an interruption included.
#[must_use]
pub fn yes(question: &str) -> bool {
    dialoguer::Confirm::new()
        .with_prompt(question)
        .default(false)
        .interact_on_opt(&console::Term::stderr())
        .ok()
        .flatten()
        .unwrap_or(false)
}
