//! `rewind fork`: a new session that ends before a turn. The old one is only read.

use super::carry::may_ask;
use super::list::session_out;
use super::{Context, Outcome};
use crate::cli;
use crate::error::Result;
use crate::model::fork::NewSession;
use crate::model::session::{Session, Turn};
use crate::ops::fork::{self, Plan};
use crate::ops::gather::Read;
use crate::ui::json::{self, PathOut};
use crate::ui::text::count;
use crate::ui::{path_text, quiet_pipe, sanitise, sanitise_lines};

/// Runs the command.
///
/// # Errors
/// See the exit codes; what was and was not changed is in the error.
pub fn run(ctx: &mut Context<'_>, args: &cli::Fork) -> Result<Outcome> {
    may_ask(ctx, args.yes || args.dry_run)?;
    let read = ctx.read(None)?;
    of(ctx, &read, args)
}

/// Forks a session that was read.
///
/// # Errors
/// As [`run`].
pub fn of(ctx: &mut Context<'_>, read: &Read, args: &cli::Fork) -> Result<Outcome> {
    let turn = read.turn(&args.turn)?;
    let new = NewSession {
        seed: fork::seed(),
        at: ctx.env.now,
        name: args.name.clone(),
    };
    let plan = fork::plan(read, turn.no, &new, ctx.env)?;
    let report = Report {
        read,
        turn,
        plan: &plan,
        name: args.name.as_deref(),
    };
    if args.dry_run {
        report.planned(ctx)?;
        return Ok(Outcome::Done);
    }
    if !args.yes {
        report
            .planned(ctx)
            .and_then(|()| quiet_pipe(ctx.ui.finish()).map_err(super::stdout))
            .map_err(|e| e.changed("nothing was changed"))?;
        ctx.confirm("Make it?")?;
    }
    let forked = fork::make(&plan, read, ctx.disk, ctx.env)?;
    report.made(ctx, &forked)?;
    Ok(Outcome::Done)
}

struct Report<'a> {
    read: &'a Read,
    turn: &'a Turn,
    plan: &'a Plan,
    name: Option<&'a str>,
}

impl Report<'_> {
    fn planned(&self, ctx: &mut Context<'_>) -> Result<()> {
        let new = self.new_session();
        if ctx.json() {
            return self.json(ctx, "planned", &new, &[]);
        }
        let (turns, from) = (self.turns(), sanitise(&self.read.session.id));
        let text = format!("would make a new session with {turns} of {from}\n");
        ctx.print(&text)?;
        self.tell_place(ctx, &new);
        Ok(())
    }

    fn made(&self, ctx: &mut Context<'_>, forked: &fork::Forked) -> Result<()> {
        if ctx.json() {
            return self.json(ctx, "done", &forked.session, &forked.unlisted);
        }
        let (id, turns) = (sanitise(&forked.session.id), self.turns());
        ctx.ui.say(&format!("made session {id} with {turns}"));
        self.tell_place(ctx, &forked.session);
        if self.name.is_some() && !self.plan.fork.named {
            let title = self.read.format.title();
            ctx.ui
                .warn(&format!("{title} keeps no name there: it has none"));
        }
        for list in &forked.unlisted {
            let list = path_text(list);
            ctx.ui.warn(&format!("could not be added to {list}"));
        }
        let (no, prompt) = (self.turn.no, sanitise_lines(&self.turn.prompt));
        ctx.print(&format!("the prompt of turn {no}:\n{prompt}\n"))?;
        if let Some(resume) = self.read.format.resume(&forked.session) {
            ctx.ui.hint(&format!("go on with `{resume}`"));
        }
        Ok(())
    }

    fn turns(&self) -> String {
        match self.turn.no {
            1 => "turn 0".to_owned(),
            n => format!("turns 0 to {}", n - 1),
        }
    }

    fn tell_place(&self, ctx: &mut Context<'_>, new: &Session) {
        ctx.ui.say(&format!("in {}", path_text(new.path())));
        let n = self.plan.checkpoints.len();
        if n > 0 {
            let with = count(n, "checkpoint", "checkpoints");
            ctx.ui.say(&format!("with {with} of the files"));
        }
    }

    /// The new session, as far as it is known before it is made.
    fn new_session(&self) -> Session {
        let fork = &self.plan.fork;
        let files = fork.session().map(|f| f.path.clone());
        Session {
            id: fork.id.clone(),
            files: files.into_iter().collect(),
            turns: Vec::new(),
            ..self.read.session.clone()
        }
    }

    fn json(
        &self,
        ctx: &mut Context<'_>,
        status: &'static str,
        new: &Session,
        unlisted: &[std::path::PathBuf],
    ) -> Result<()> {
        let out = json::Fork {
            schema: "rewind.fork/1",
            status,
            from: session_out(&self.read.session),
            turn: self.turn.no,
            turn_id: self.turn.key.clone(),
            prompt: self.turn.prompt.clone(),
            session: session_out(new),
            checkpoints: self.plan.checkpoints.len(),
            name: self
                .name
                .filter(|_| self.plan.fork.named)
                .map(str::to_owned),
            resume: self.read.format.resume(new),
            unlisted: unlisted.iter().map(|p| PathOut::new(p)).collect(),
        };
        ctx.print_json(&out)
    }
}
