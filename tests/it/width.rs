//! Tables on terminals of any width: no row is longer than the terminal, and columns stay straight whatever a prompt holds.

use console::measure_text_width;

use crate::env::TestEnv;
use crate::story::{NOW, Story};

/// Where each turn's prompt begins with `>>`, whatever comes behind.
fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.at(NOW);
    let mut s = Story::new(&env);
    let long = "a long one ".repeat(60);
    for prompt in [
        "plain",
        "検査を直す 検査を直す 検査を直す 検査を直す 検査を直す",
        "👩‍👩‍👧‍👦 family 👍🏽 thumbs ❤️ heart 🇩🇪 flag",
        "e\u{301}e\u{301} combining, zero\u{200b}width, \u{202e}txet desrever",
        "\x1b[31mred\x1b[0m and a\ttab",
        &long,
    ] {
        s.prompt(&format!(">>{prompt}"));
        s.write("検査.txt", prompt);
        s.answer();
    }
    s.save();
    env
}

/// The rows of a table that hold the mark.
fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|l| l.contains(">>")).collect()
}

#[test]
fn the_turns_fit_terminals_of_20_to_400_columns_and_stand_straight() {
    let env = world();
    for width in [20, 40, 60, 80, 200, 400] {
        let run = env.run(&["list", "--width", &width.to_string()]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        let rows: Vec<&str> = rows(&run.stdout);
        if width >= 60 {
            assert_eq!(rows.len(), 6, "{}", run.text());
        }
        for line in run.stdout.lines() {
            assert!(measure_text_width(line) <= width, "{width}: {line}");
        }
        let starts: Vec<usize> = rows
            .iter()
            .map(|row| measure_text_width(row.split(">>").next().unwrap()))
            .collect();
        assert!(
            starts.windows(2).all(|w| w[0] == w[1]),
            "{width}: {starts:?}"
        );
    }
}

#[test]
fn sessions_and_counts_fit_too() {
    let env = world();
    for width in [20, 60, 200, 400] {
        let arg = width.to_string();
        for command in [&["sessions"][..], &["show", "0", "--stat"], &["log"]] {
            let run = env.run(&[command, &["--width", &arg]].concat());
            let table = |l: &&str| l.contains(">>") || l.contains(" | ");
            for line in run.stdout.lines().filter(table) {
                assert!(measure_text_width(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn without_colour_nothing_is_told_by_colour_alone_and_no_sequence_is_printed() {
    let mut env = world();
    let plain = env.run(&["list", "--color", "never"]).stdout;
    let painted = env.run(&["list", "--color", "always"]).stdout;
    assert!(!plain.contains('\x1b') && painted.contains("\x1b["));
    assert_eq!(console::strip_ansi_codes(&painted), plain);
    env.set("NO_COLOR", "1");
    assert_eq!(env.run(&["list"]).stdout, plain);
}
