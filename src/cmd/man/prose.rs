//! Running text as roff: paragraphs are filled, what stands in backticks is bold, indented lines stay as they are.
//! Lines of the source are short and a sentence begins a new one, so that a change of a word changes few of them.

use roff::{Inline, Roff, bold, roman};

/// No line of a page's source is longer; `mandoc -T lint` warns from 81 bytes on.
const WIDEST: usize = 76;

/// Adds a text of several paragraphs. Each but the first begins with the macro that keeps the indent of where it stands.
pub(super) fn paragraphs(roff: &mut Roff, text: &str, between: &str) {
    for (at, paragraph) in text.split("\n\n").enumerate() {
        if at > 0 {
            roff.control(between, []);
        }
        paragraph_of(roff, paragraph);
    }
}

/// Adds a paragraph; its indented lines are an example and not filled.
fn paragraph_of(roff: &mut Roff, text: &str) {
    let mut plain = String::new();
    let mut kept = Vec::new();
    for line in text.lines() {
        if line.starts_with(' ') {
            fill(roff, &plain);
            plain.clear();
            kept.push(line);
        } else {
            literal(roff, &kept);
            kept.clear();
            plain = format!("{plain} {line}");
        }
    }
    fill(roff, &plain);
    literal(roff, &kept);
}

/// Adds lines that stay as they are, a step to the right.
pub(super) fn literal(roff: &mut Roff, lines: &[&str]) {
    if lines.is_empty() {
        return;
    }
    roff.control("RS", ["4"]).control("nf", []);
    for line in lines {
        roff.text([bold(line.trim())]);
    }
    roff.control("fi", []).control("RE", []);
}

/// Adds text that is filled.
pub(super) fn fill(roff: &mut Roff, text: &str) {
    let mut line: Vec<Inline> = Vec::new();
    let mut used = 0;
    for word in words(text) {
        let long: usize = word.iter().map(|(text, face)| width(text, *face)).sum();
        if used > 0 && used + 1 + long > WIDEST {
            roff.text(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(roman(" "));
            used += 1;
        }
        used += long;
        let ends = word.last().is_some_and(|(text, _)| text.ends_with('.'));
        line.extend(word.into_iter().map(|(text, face)| match face {
            Face::Plain => roman(text),
            Face::Code => bold(text),
        }));
        if ends {
            roff.text(std::mem::take(&mut line));
            used = 0;
        }
    }
    if !line.is_empty() {
        roff.text(line);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Plain,
    /// Between backticks.
    Code,
}

/// The words of a text, each with the pieces that it is made of: a backtick may stand inside of it.
fn words(text: &str) -> Vec<Vec<(String, Face)>> {
    let mut words = Vec::new();
    let mut word: Vec<(String, Face)> = Vec::new();
    for (at, piece) in text.split('`').enumerate() {
        let face = if at % 2 == 1 { Face::Code } else { Face::Plain };
        for (n, part) in piece.split(char::is_whitespace).enumerate() {
            if n > 0 && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !part.is_empty() {
                word.push((part.to_owned(), face));
            }
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// How many bytes a piece takes in the source, its escapes included.
fn width(text: &str, face: Face) -> usize {
    let escapes: usize = text
        .chars()
        .map(|c| match c {
            '-' | '\\' => 1,
            '\'' => 4,
            _ => 0,
        })
        .sum();
    let marks = if face == Face::Code { 6 } else { 0 };
    text.len() + escapes + marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let mut roff = Roff::new();
        paragraphs(&mut roff, text, "PP");
        roff.to_roff()
    }

    #[test]
    fn a_sentence_begins_a_line_and_code_is_bold() {
        assert_eq!(
            filled("One `a b`,\ntwo. Three."),
            "One \\fBa\\fR \\fBb\\fR, two.\nThree.\n"
        );
    }

    #[test]
    fn an_example_is_not_filled() {
        assert_eq!(
            filled("First:\n  a b\n  c\n\nThen."),
            "First:\n.RS 4\n.nf\n\\fBa b\\fR\n\\fBc\\fR\n.fi\n.RE\n.PP\nThen.\n"
        );
    }

    #[test]
    fn no_line_of_the_source_is_long() {
        let text = "it's a `--long-option` and so on ".repeat(20);
        let longest = filled(&text).lines().map(str::len).max();
        assert!(longest <= Some(80), "{longest:?}");
        assert!(longest >= Some(60), "{longest:?}");
    }

    #[test]
    fn what_roff_would_act_upon_is_text() {
        assert_eq!(filled(".PP is a macro"), "\\&.PP is a macro\n");
        assert_eq!(filled("'so"), "\\&'so\n");
        assert_eq!(filled("`.x` a\\b"), "\\fB.x\\fR a\\\\b\n");
    }
}
