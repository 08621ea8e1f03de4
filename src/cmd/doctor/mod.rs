//! `rewind doctor`: what is in force, what is set up, and whether the session here goes back.

mod session;

use super::{Context, Outcome};
use crate::error::Result;
use crate::ops::doctor::{self, Agent, Hooks, Report};
use crate::ui::json::{self, FaultOut, PathOut};
use crate::ui::text::{Cell, Column, Table, size};
use crate::ui::{Paint, path_text};

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(ctx: &mut Context<'_>) -> Result<Outcome> {
    let report = doctor::look(ctx.env);
    let looked = session::of(ctx)?;
    if ctx.json() {
        ctx.print_json(&out(&report, session::out(&looked)))?;
        return Ok(Outcome::Done);
    }
    let text = settings(&report);
    ctx.print(&text)?;
    if report.agents.is_empty() {
        ctx.ui.say("no agent was found");
    } else {
        let text = table(&report.agents).text(ctx.ui.style(), ctx.ui.width());
        ctx.print(&text)?;
    }
    ctx.print(&format!("\n{}", session::text(&looked)))?;
    problems(ctx, &report);
    session::hints(ctx, &looked);
    Ok(Outcome::Done)
}

fn settings(report: &Report) -> String {
    let config = &report.config;
    let place = |p: Option<&std::path::PathBuf>| {
        p.map_or("none: there is no home folder".to_owned(), |p| path_text(p))
    };
    let git = if config.git {
        format!("on, at most {} ms", config.git_limit)
    } else {
        "off, unless an agent's hooks ask for it".to_owned()
    };
    let durable = if config.durable { "fsync" } else { "kill" };
    let rows = [
        ("config", place(report.config_file.as_ref())),
        ("state", place(report.state.as_ref())),
        ("largest capture", size(config.largest)),
        ("durability", durable.to_owned()),
        ("git mode", git),
    ];
    let lines = rows.map(|(name, value)| format!("{name:<16} {value}\n"));
    lines.concat() + "\n"
}

fn table(agents: &[Agent]) -> Table {
    let columns = vec![
        Column::Left("agent"),
        Column::Left("hooks"),
        Column::Left("settings"),
    ];
    let mut table = Table::new(columns);
    for agent in agents {
        let (words, paint) = match &agent.hooks {
            Hooks::On => ("on", Some(Paint::Added)),
            Hooks::WithGit => ("on, with git", Some(Paint::Added)),
            Hooks::Off if agent.settings.is_none() => ("none known", None),
            Hooks::Off => ("off", None),
            Hooks::Unknown(_) => ("not known", Some(Paint::Removed)),
        };
        let hooks = match paint {
            Some(paint) => Cell::painted(words, paint),
            None => Cell::new(words),
        };
        let settings = agent.settings.as_deref().map(path_text).unwrap_or_default();
        table.row(vec![Cell::new(agent.name), hooks, Cell::new(settings)]);
    }
    table
}

fn problems(ctx: &mut Context<'_>, report: &Report) {
    if let Some(fault) = &report.config.fault {
        let path = path_text(&fault.path);
        ctx.ui.warn(&format!(
            "`{path}` is not used, the defaults are in force: {}",
            fault.why
        ));
    }
    for fault in report.faults {
        let path = path_text(&fault.path);
        ctx.ui.warn(&format!("`{path}` is left out: {}", fault.why));
    }
    for agent in &report.agents {
        if let (Hooks::Unknown(why), Some(path)) = (&agent.hooks, &agent.settings) {
            ctx.ui
                .warn(&format!("`{}` cannot be read: {why}", path_text(path)));
        }
    }
    let off = report
        .agents
        .iter()
        .find(|a| a.hooks == Hooks::Off && a.settings.is_some());
    if let Some(agent) = off {
        let name = agent.name;
        ctx.ui.hint(&format!(
            "`rewind init {name}` captures what {name} does not record"
        ));
    }
}

fn out(report: &Report, session: Option<json::DoctorSession>) -> json::Doctor {
    let config = &report.config;
    let fault = |path: &std::path::Path, why: &str| FaultOut {
        path: PathOut::new(path),
        why: why.to_owned(),
    };
    let own = config.fault.iter().map(|f| fault(&f.path, &f.why));
    let described = report.faults.iter().map(|f| fault(&f.path, &f.why));
    json::Doctor {
        schema: "rewind.doctor/1",
        config: json::ConfigOut {
            largest: config.largest,
            durable: config.durable,
            git: config.git,
            git_limit_ms: config.git_limit,
        },
        agents: report
            .agents
            .iter()
            .map(|a| json::AgentOut {
                agent: a.name,
                hooks: match &a.hooks {
                    Hooks::On => "on",
                    Hooks::WithGit => "git",
                    Hooks::Off if a.settings.is_none() => "none",
                    Hooks::Off => "off",
                    Hooks::Unknown(_) => "unknown",
                },
                settings: a
                    .settings
                    .as_deref()
                    .map(|s| s.to_string_lossy().into_owned()),
            })
            .collect(),
        faults: own.chain(described).collect(),
        session,
    }
}
