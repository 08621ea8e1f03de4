//! Long output goes through `$PAGER`, as a person is used to it: `less -FRX` unless they say otherwise, which ends at once
//! where all fits on the screen. One that cannot be started is none, and one that was left early is no failure.

use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::env::Env;

/// A pager at work.
#[derive(Debug)]
pub(super) struct Pager {
    child: Child,
    to: Option<BufWriter<ChildStdin>>,
}

/// The command that the user wants; `None` for none.
fn wanted(env: &Env) -> Option<String> {
    if env.var("TERM").is_some_and(|t| t == "dumb") {
        return None;
    }
    let set = env.vars.get(std::ffi::OsStr::new("PAGER"));
    let command = match set {
        None => "less".to_owned(),
        Some(set) => set.to_str()?.trim().to_owned(),
    };
    let word = command.split_whitespace().next().filter(|w| *w != "cat")?;
    // The shell would say that there is none, and the text would be lost.
    let mut folders = env.paths().into_iter();
    let there = if word.contains('/') {
        env.cwd.join(word).exists()
    } else {
        folders.any(|f| f.join(word).is_file())
    };
    there.then_some(command)
}

impl Pager {
    pub(super) fn start(env: &Env) -> Option<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(wanted(env)?).stdin(Stdio::piped());
        if env.var("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        let mut child = shell.spawn().ok()?;
        let to = child.stdin.take().map(BufWriter::new);
        Some(Self { child, to })
    }

    /// What is printed behind the user's back, after they have left, is not missed.
    pub(super) fn print(&mut self, data: &[u8]) -> io::Result<()> {
        let Some(to) = &mut self.to else {
            return Ok(());
        };
        match to.write_all(data) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.to = None;
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn wait(mut self) {
        // Dropping the pipe ends the pager's input; a pager that was left needs no more.
        drop(self.to.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_pager_is_taken_and_none_where_they_want_or_have_none() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["less", "more", "cat"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let path = dir.path().to_str().unwrap();
        let with = |vars: &[(&str, &str)]| {
            let all = [&[("PATH", path)], vars].concat();
            let vars = all.iter().map(|(k, v)| (k.into(), v.into())).collect();
            wanted(&Env {
                vars,
                ..Env::bare()
            })
        };
        assert_eq!(with(&[]).as_deref(), Some("less"));
        assert_eq!(with(&[("PAGER", "more -d")]).as_deref(), Some("more -d"));
        let full = format!("{path}/more");
        assert_eq!(with(&[("PAGER", &full)]), Some(full.clone()));
        for none in ["", " ", "cat", "cat -v", "nano-pager", "/nowhere/less"] {
            assert_eq!(with(&[("PAGER", none)]), None, "{none}");
        }
        assert_eq!(with(&[("TERM", "dumb")]), None);
        assert_eq!(with(&[("PATH", "/nowhere")]), None);
    }
}
