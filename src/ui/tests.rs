//! Promises of the streams and of the texts that reach them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::rc::Rc;

use super::*;
use crate::error::Kind;

/// A stream whose bytes can be looked at.
#[derive(Clone, Default)]
struct Tape(Rc<RefCell<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tape {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

/// A stream whose reader went away.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

fn env(vars: &[(&str, &str)]) -> Env {
    Env {
        vars: vars
            .iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v)))
            .collect::<BTreeMap<_, _>>(),
        ..Env::bare()
    }
}

fn taped(talk: Talk) -> (Ui, Tape, Tape) {
    let (out, err) = (Tape::default(), Tape::default());
    let (o, e) = (Box::new(out.clone()), Box::new(err.clone()));
    (Ui::new(&env(&[]), Colour::Auto, talk, o, e), out, err)
}

#[test]
fn data_and_talk_never_mix() {
    let (mut ui, out, err) = taped(Talk::Normal);
    ui.line("data").unwrap();
    ui.say("said");
    ui.warn("odd");
    ui.hint("run it");
    ui.detail("unheard");
    ui.finish().unwrap();
    assert_eq!(out.text(), "data\n");
    assert_eq!(err.text(), "said\nwarning: odd\nhint: run it\n");
}

#[test]
fn quiet_silences_talk_but_no_error() {
    let (mut ui, out, err) = taped(Talk::Quiet);
    ui.say("said");
    ui.warn("odd");
    ui.hint("run it");
    ui.line("data").unwrap();
    ui.error(&Error::new(Kind::Failed, "it failed"));
    assert_eq!(out.text(), "data\n");
    assert_eq!(err.text(), "error: it failed\nnothing was changed\n");
}

#[test]
fn an_error_has_its_four_parts_and_no_escape_of_the_session() {
    let error = Error::new(Kind::Conflict, "turn 7 cannot be restored")
        .path("src/a\x1b.rs", "changed since")
        .path("b", "")
        .hint("see `rewind show 7`");
    let want = "error: turn 7 cannot be restored\n  \"src/a\\u{1b}.rs\": changed since\n  b\n\
                nothing was changed\nhint: see `rewind show 7`\n";
    assert_eq!(error_text(&error, Style::Plain), want);
}

#[test]
fn a_reader_that_went_away_is_no_failure_and_stops_no_talk() {
    let mut ui = Ui::new(
        &env(&[]),
        Colour::Auto,
        Talk::Normal,
        Box::new(Gone),
        Box::new(Gone),
    );
    ui.say("nobody hears it");
    let result = ui.line("data");
    assert_eq!(
        result.as_ref().unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
    quiet_pipe(result).unwrap();
    let full = quiet_pipe(Err(io::ErrorKind::StorageFull.into()));
    assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
}

/// Flag, variables, whether it is a terminal, whether it is coloured.
type ColourCase = (Colour, &'static [(&'static str, &'static str)], bool, bool);

#[test]
fn colour_follows_flag_variables_and_terminal_in_this_order() {
    let cases: &[ColourCase] = &[
        (Colour::Auto, &[], true, true),
        (Colour::Auto, &[], false, false),
        (Colour::Auto, &[("NO_COLOR", "1")], true, false),
        (Colour::Auto, &[("NO_COLOR", "")], true, true),
        (Colour::Auto, &[("CLICOLOR_FORCE", "1")], false, true),
        (Colour::Auto, &[("CLICOLOR_FORCE", "0")], false, false),
        (
            Colour::Auto,
            &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
            true,
            false,
        ),
        (Colour::Auto, &[("TERM", "dumb")], true, false),
        (Colour::Always, &[("NO_COLOR", "1")], false, true),
        (Colour::Never, &[("CLICOLOR_FORCE", "1")], true, false),
    ];
    for (colour, vars, tty, coloured) in cases {
        let env = Env {
            tty: *tty,
            ..env(vars)
        };
        let (o, e) = (Box::new(io::sink()), Box::new(io::sink()));
        let ui = Ui::new(&env, *colour, Talk::Normal, o, e);
        let got = ui.style() == Style::Coloured;
        assert_eq!(got, *coloured, "{colour:?} {vars:?} tty={tty}");
    }
}

#[test]
fn progress_is_drawn_only_where_somebody_looks() {
    for (interactive, talk, vars, draws) in [
        (true, Talk::Normal, &[][..], true),
        (false, Talk::Normal, &[], false),
        (true, Talk::Quiet, &[], false),
        (true, Talk::Normal, &[("TERM", "dumb")], false),
    ] {
        let env = Env {
            interactive,
            ..env(vars)
        };
        let (o, e) = (Box::new(io::sink()), Box::new(io::sink()));
        let ui = Ui::new(&env, Colour::Auto, talk, o, e);
        assert_eq!(ui.draws(), draws, "{interactive} {talk:?} {vars:?}");
    }
}

#[test]
fn a_prompt_cannot_steer_the_terminal() {
    for (hostile, shown) in [
        ("a\x1b[31mb", "a\\u{1b}[31mb"),
        ("one\ntwo\r\n\tthree", "one\\ntwo\\r\\n\\tthree"),
        ("bell\x07 nul\0 del\x7f", "bell\\u{7} nul\\u{0} del\\u{7f}"),
        ("c1 \u{9b}31m", "c1 \\u{9b}31m"),
        ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
        ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ("tag\u{e0041}\u{e01ef}", "tag\\u{e0041}\\u{e01ef}"),
        ("a\u{200d}b", "a\\u{200d}b"),
    ] {
        assert_eq!(sanitise(hostile), shown);
    }
}

#[test]
fn honest_text_stays_as_it_is() {
    for text in [
        "größe 検査 é",
        "👩\u{200d}🔧 ❤\u{fe0f}",
        "می\u{200c}خواهم",
        "C:\\path \"q\"",
    ] {
        assert!(matches!(sanitise(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn a_prompt_of_several_lines_keeps_them() {
    assert_eq!(
        sanitise_lines("a\r\nb\tc\nd\x1be\rf"),
        "a\nb\tc\nd\\u{1b}e\\rf"
    );
    assert_eq!(sanitise_lines("a\nb\n"), "a\nb\n");
}

#[test]
fn two_paths_never_look_alike() {
    for (name, shown) in [
        ("src/größe.rs", "src/größe.rs"),
        ("a b", "a b"),
        ("a\nb", "\"a\\nb\""),
        ("a\\nb", "a\\nb"),
        ("a\\\nb", "\"a\\\\\\nb\""),
        (" a", "\" a\""),
        ("a ", "\"a \""),
        ("", "\"\""),
        ("\"q\"", "\"\\\"q\\\"\""),
        ("-rf", "-rf"),
        ("é\u{200d}a", "\"é\\u{200d}a\""),
        ("a\u{202e}sr", "\"a\\u{202e}sr\""),
    ] {
        assert_eq!(path_text(Path::new(name)), shown);
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_shows_its_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9/\xff");
    assert_eq!(path_text(Path::new(name)), "\"caf\\xe9/\\xff\"");
}

#[test]
fn ages_are_words_and_far_times_are_dates() {
    let now = DateTime::parse_from_rfc3339("2026-03-31T12:00:00Z")
        .unwrap()
        .to_utc();
    let ago = |seconds: i64| age(now - chrono::TimeDelta::seconds(seconds), now);
    for (seconds, words) in [
        (0, "just now"),
        (-30, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (7_200, "2 h ago"),
        (86_400, "1 day ago"),
        (172_800, "2 days ago"),
        (29 * 86_400, "29 days ago"),
        (30 * 86_400, "2026-03-01"),
        (-86_400, "2026-04-01"),
    ] {
        assert_eq!(ago(seconds), words, "{seconds} s");
    }
}
