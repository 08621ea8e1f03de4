//! One file a subcommand, each the same five steps: gather → plan → preview → apply → report. What they share of the
//! command line stands here.

pub mod carry;
pub mod complete;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod fork;
pub mod hook;
pub mod init;
pub mod list;
pub mod log;
pub mod man;
pub mod patch;
pub mod pick;
pub mod pin;
pub mod preview;
pub mod prune;
pub mod report;
pub mod restore;
pub mod sessions;
pub mod show;
pub mod undo;
pub mod verify;
pub mod words;

use std::io;

use crate::cli::{Cli, Command, Global, Shipped, Stores};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::ops::Disk;
use crate::ops::discover::{self, Found};
use crate::ops::gather::Read;
use crate::ops::journal::{self, Journal};
use crate::ops::recover::{self, Recovered};
use crate::ops::{Root, apply};
use crate::ui::ask::{Answer, Ask};
use crate::ui::{Ui, json, quiet_pipe};

/// What every command gets.
pub struct Context<'a> {
    /// The surroundings.
    pub env: &'a Env,
    /// The options that hold for every command.
    pub global: &'a Global,
    /// The streams.
    pub ui: &'a mut Ui,
    /// Whom to ask.
    pub ask: &'a mut dyn Ask,
    /// The disk that is changed.
    pub disk: &'a dyn Disk,
}

/// How a command ended that did not fail: done, or done but for some paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All of it.
    Done,
    /// Not all of it; the report names the paths.
    Partial,
    /// The user left without choosing anything; nothing was changed.
    Left,
    /// It did what was asked, and what it found has a code of its own.
    Ended(Kind),
}

/// Runs a command; returns the exit code.
pub fn run(cli: Cli, env: &Env, ui: &mut Ui, ask: &mut dyn Ask, disk: &dyn Disk) -> u8 {
    let Cli { global, command } = cli;
    let mut ctx = Context {
        env,
        global: &global,
        ui,
        ask,
        disk,
    };
    let result = match command {
        None => pick::run(&mut ctx),
        Some(command) => one(command, &mut ctx),
    };
    let result = result.and_then(|outcome| {
        let flushed = quiet_pipe(ctx.ui.finish());
        flushed.map_err(stdout)?;
        Ok(outcome)
    });
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Partial) => Kind::Partial.code(),
        Ok(Outcome::Left) => Kind::Interrupted.code(),
        Ok(Outcome::Ended(kind)) => kind.code(),
        Err(error) => {
            ctx.fail(&error);
            error.kind.code()
        }
    }
}

fn one(command: Command, ctx: &mut Context<'_>) -> Result<Outcome> {
    match command {
        Command::Sessions(args) => sessions::run(ctx, &args),
        Command::List(args) => list::run(ctx, &args),
        Command::Show(args) => show::run(ctx, &args),
        Command::Restore(args) => restore::run(ctx, &args),
        Command::Fork(args) => fork::run(ctx, &args),
        Command::Hook(args) => {
            hook::run(args.agent.as_deref(), args.git, ctx.env, ctx.disk);
            Ok(Outcome::Done)
        }
        Command::Init(args) => init::init(ctx, &args),
        Command::Deinit(args) => init::deinit(ctx, &args),
        Command::Doctor => doctor::run(ctx),
        Command::Demo => demo::run(ctx),
        Command::Undo(args) => undo::undo(ctx, &args),
        Command::Redo(args) => undo::redo(ctx, &args),
        Command::Log(args) => log::run(ctx, &args),
        Command::Stores(Stores::Prune(args)) => prune::run(ctx, &args),
        Command::Stores(Stores::Verify(args)) => verify::run(ctx, &args),
        Command::Stores(Stores::Pin(args)) => pin::pin(ctx, &args),
        Command::Stores(Stores::Unpin(args)) => pin::unpin(ctx, &args),
        Command::Shipped(Shipped::Man(args)) => man::run(ctx, &args),
        Command::Shipped(Shipped::Completions(args)) => completions::run(ctx, &args),
    }
}

/// An error on standard output. What was done before it stays done, so the caller says what that was.
pub fn stdout(source: io::Error) -> Error {
    let kind = crate::error::storage_kind(&source);
    Error::new(kind, "standard output cannot be written")
        .changed("the command did its work; only its report is incomplete")
        .because(source)
}

/// An error of the terminal that was to be asked on.
pub fn no_terminal(source: io::Error) -> Error {
    Error::new(Kind::Failed, "the terminal cannot be asked on")
        .hint("add `--yes` to do it without a question")
        .because(source)
}

impl Context<'_> {
    /// Whether the result is to be JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        self.global.json.is_some()
    }

    /// Prints text.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&mut self, text: &str) -> Result<()> {
        quiet_pipe(self.ui.print(text)).map_err(stdout)
    }

    /// Finds and reads the session that the user means.
    ///
    /// # Errors
    /// There is none, there are several, or it cannot be read.
    pub fn read(&mut self, name: Option<&str>) -> Result<Read> {
        self.settle_here()?;
        let name = name.or(self.global.session.as_deref());
        let workspace = self.global.workspace.as_deref();
        let found = discover::pick(self.env, name, workspace)?;
        self.read_found(&found)
    }

    /// Reads a session that was found.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_found(&self, found: &Found) -> Result<Read> {
        let _shown = self.ui.progress("reading the session", None);
        Read::new(found, self.env)
    }

    /// Settles before a session is looked for: a killed run may have left it cut, or with nothing in it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn settle_here(&mut self) -> Result<()> {
        let Ok(root) = undo::root(self) else {
            // There is no such folder: whoever needs it says so.
            return Ok(());
        };
        self.settle_to_look(&root)
    }

    /// Settles before something is only looked at: another run at work is no reason not to.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn settle_to_look(&mut self, root: &Root) -> Result<()> {
        match self.settle(root) {
            Err(e) if e.kind == Kind::Busy => Ok(()),
            other => other,
        }
    }

    /// A command to type next: with the session that was named, and the folder.
    #[must_use]
    pub fn command(&self, words: &str, session: Option<&str>) -> String {
        let mut line = vec!["rewind".to_owned(), words.to_owned()];
        if let Some(name) = session {
            line.extend(["-s".to_owned(), words::shell_word(name)]);
        }
        if let Some(folder) = &self.global.workspace {
            let folder = words::shell_word(&folder.to_string_lossy());
            line.extend(["-w".to_owned(), folder]);
        }
        let line = line.join(" ");
        // The name may have come from anywhere, so it may hold anything.
        crate::ui::sanitise(&line).into_owned()
    }

    /// Finishes or reverts what a killed run left open in this folder; every command that looks at it begins so.
    ///
    /// # Errors
    /// Another run is at work, or the disk refuses.
    pub fn settle(&mut self, root: &Root) -> Result<()> {
        // Without a place for a journal nothing was ever done, so nothing can be open.
        if self.env.state.is_none() {
            return Ok(());
        }
        let journal = Journal::open(self.env.state.as_deref(), root)?;
        let id = self.operation_id();
        let recovered = recover::recover(&self.engine(&journal, root, &id))?;
        self.tell_recovered(recovered);
        Ok(())
    }

    fn operation_id(&self) -> String {
        journal::operation_id(self.env.now, self.env.pid, 0)
    }

    fn engine<'c>(
        &'c self,
        journal: &'c Journal,
        root: &'c Root,
        id: &'c str,
    ) -> apply::Context<'c> {
        apply::Context {
            disk: self.disk,
            journal,
            root,
            now: self.env.now,
            id,
            watch: apply::unwatched(),
        }
    }

    fn tell_recovered(&mut self, recovered: Option<Recovered>) {
        let Some(recovered) = recovered else { return };
        let how = match recovered.close {
            recover::Close::Finished => "was finished",
            recover::Close::Reverted => "was taken back",
        };
        self.ui.warn(&format!(
            "operation {} had been interrupted; it {how}",
            recovered.id
        ));
        for (path, why) in recovered.left {
            self.ui.warn(&format!(
                "left as it is: {}: {why}",
                crate::ui::path_text(&path)
            ));
        }
    }

    /// Asks whether to do what was shown. Enter alone means no.
    ///
    /// # Errors
    /// A no, an interruption, or the terminal is gone; nothing was changed then.
    pub fn confirm(&mut self, question: &str) -> Result<()> {
        match self.ask.yes(question).map_err(no_terminal)? {
            Answer::This(true) => Ok(()),
            Answer::This(false) | Answer::Back => Err(Error::new(Kind::Failed, "not confirmed")),
            Answer::Out => Err(Error::new(Kind::Interrupted, "interrupted at the question")),
        }
    }

    fn fail(&mut self, error: &Error) {
        if self.json() {
            self.ui.tell_json(&json::text(&json::ErrorOut::new(error)));
        } else {
            self.ui.error(error);
        }
    }
}
