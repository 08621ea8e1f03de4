//! What is set up, and what of it works: the config in force, the agents' hooks, descriptions of agents. Reads only.

pub mod session;

use std::path::PathBuf;

use crate::env::Env;
use crate::format::described::{self, Fault};
use crate::format::{self, Format};
use crate::ops::config::Config;
use crate::ops::init::{self, Mode, Whose};

/// How our hooks stand in one settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hooks {
    /// They are there.
    On,
    /// With git mode.
    WithGit,
    /// They are not.
    Off,
    /// The file cannot be read or parsed: why.
    Unknown(String),
}

/// One agent that keeps something on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: &'static str,
    /// Its settings file; `None` where it has no hooks that are known.
    pub settings: Option<PathBuf>,
    /// Our hooks in it.
    pub hooks: Hooks,
}

/// All that was found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The settings in force.
    pub config: Config,
    /// Where they are read from.
    pub config_file: Option<PathBuf>,
    /// Where the journal and captures without a session are.
    pub state: Option<PathBuf>,
    /// The agents that were found.
    pub agents: Vec<Agent>,
    /// Descriptions that cannot be used.
    pub faults: &'static [Fault],
}

/// Looks.
#[must_use]
pub fn look(env: &Env) -> Report {
    let all = format::all(env).iter();
    let agents = all.filter_map(|f| agent(*f, env)).collect();
    Report {
        config: Config::read(env),
        config_file: env.config.as_ref().map(|c| c.join("config.toml")),
        state: env.state.clone(),
        agents,
        faults: described::faults(env),
    }
}

/// An agent whose home folder or sessions are there.
fn agent(format: &dyn Format, env: &Env) -> Option<Agent> {
    let setup = format.hooks();
    let settings = setup.and_then(|s| s.user.path(env));
    let home = setup.and_then(|s| env.dir(s.user.var, s.user.home));
    // A home that is the user's own says nothing of the agent.
    let home = home.filter(|h| Some(h) != env.home.as_ref());
    let there = home.is_some_and(|h| h.is_dir()) || settings.as_ref().is_some_and(|s| s.exists());
    if !there && format.places(env, None).is_empty() {
        return None;
    }
    let hooks = match setup {
        Some(_) => hooks(format.agent(), env),
        None => Hooks::Off,
    };
    Some(Agent {
        name: format.agent(),
        settings,
        hooks,
    })
}

fn hooks(agent: &str, env: &Env) -> Hooks {
    let done = |mode| init::add(agent, &Whose::User, mode, env).map(|p| p.is_done());
    match done(Mode::Files) {
        Err(e) => Hooks::Unknown(e.paths.first().map_or(e.message, |(_, why)| why.clone())),
        Ok(true) => Hooks::On,
        Ok(false) if done(Mode::Git).is_ok_and(|d| d) => Hooks::WithGit,
        Ok(false) => Hooks::Off,
    }
}
