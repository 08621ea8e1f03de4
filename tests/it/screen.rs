//! The program on a terminal of its own: what a person would see and type. The picture is what a terminal makes of the
//! program's bytes (vt100), so that a test asserts on the screen and not on escape sequences.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::env::TestEnv;

/// How long a screen may take to come: for a machine that is busy, not for the program.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program on a terminal.
pub(crate) struct Screen {
    master: File,
    child: Child,
    parser: vt100::Parser,
    raw: Vec<u8>,
    gone: bool,
}

impl Screen {
    /// Starts the program on a terminal of that size; `None` where no terminal of its own can be given to a program.
    pub(crate) fn start(env: &TestEnv, args: &[&str], (rows, columns): (u16, u16)) -> Option<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        tcsetwinsize(&slave, size(rows, columns)).unwrap();
        let plain = env.command(args);
        // Ctrl-C reaches a program only on its controlling terminal.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(plain.get_program());
        command.args(args).env_clear();
        command.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
        command.env_remove("COLUMNS");
        command.current_dir(env.workspace());
        let end = || Stdio::from(OwnedFd::from(slave.try_clone().unwrap()));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let Ok(child) = child else {
            // Nothing depends on the line being seen.
            let _ = writeln!(std::io::stderr(), "skipped: there is no setsid here");
            return None;
        };
        Some(Self {
            master: master.into(),
            child,
            parser: vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0),
            raw: Vec::new(),
            gone: false,
        })
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        tcsetwinsize(&self.master, size(rows, columns)).unwrap();
        self.parser
            .screen_mut()
            .set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the program has drawn all of what it began to draw.
    fn is_drawn(&self) -> bool {
        let last = |mark: &[u8]| self.raw.windows(mark.len()).rposition(|w| w == mark);
        last(b"\x1b[?2026l") >= last(b"\x1b[?2026h")
    }

    /// Waits until the screen holds the text; returns the screen.
    pub(crate) fn shows(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        while !(self.is_drawn() && self.text().contains(text)) {
            assert!(
                !self.gone && Instant::now() < until,
                "`{text}` did not come:\n{}",
                self.text()
            );
            self.take(until);
        }
        self.text()
    }

    /// Waits until the program has ended; returns its exit code and the screen.
    pub(crate) fn ends(&mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        while !self.gone {
            assert!(Instant::now() < until, "does not end:\n{}", self.text());
            self.take(until);
        }
        (self.child.wait().unwrap().code(), self.text())
    }

    /// Whether the terminal shows its cursor and the user's own screen.
    pub(crate) fn is_as_before(&self) -> bool {
        !self.parser.screen().hide_cursor() && !self.parser.screen().alternate_screen()
    }

    /// All bytes that came.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    fn text(&self) -> String {
        let contents = self.parser.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    fn take(&mut self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut fds, Some(&wait)).unwrap() == 0 {
            return;
        }
        let mut bytes = [0; 4096];
        match self.master.read(&mut bytes) {
            // A terminal whose other end is closed by everybody is an error of reading, on Linux.
            Ok(0) | Err(_) => self.gone = true,
            Ok(n) => {
                self.raw.extend_from_slice(&bytes[..n]);
                self.parser.process(&bytes[..n]);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A test that failed leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
