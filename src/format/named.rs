//! Agents that are known and not read: where a trace of each lies, why it is not read, and its own way back. Saying so
//! beats "no session was found" (`formats/agents.md` §3.14).

use std::path::{Path, PathBuf};

use super::hooks::{self, Setup};
use crate::env::Env;

/// One such agent.
#[derive(Debug)]
pub struct Named {
    /// Its name, as `--agent` would take it.
    pub agent: &'static str,
    /// Its name, as people write it.
    pub title: &'static str,
    /// Why its sessions are not read.
    pub why: &'static str,
    /// Its own way back.
    pub instead: &'static str,
    /// Where its sessions lie.
    places: &'static [Place],
    /// What the files of its sessions are called.
    files: &'static [&'static str],
    /// How it is told to call our hook: then its files go back, by our captures alone.
    pub hooks: Option<Setup>,
}

#[derive(Debug)]
enum Place {
    /// A folder named by a variable, and where it is not set one below home; then a path in it.
    In(&'static str, &'static str, &'static str),
    /// A path in the working folder or one above it.
    Above(&'static str),
}

use Place::{Above, In};

/// All of them.
pub const NAMED: &[Named] = &[
    Named {
        agent: "opencode",
        title: "OpenCode",
        why: "its sessions are in a database",
        instead: "`/undo` and `/redo` in OpenCode take back messages and files",
        places: &[In("XDG_DATA_HOME", ".local/share", "opencode")],
        files: &["opencode.db"],
        hooks: Some(Setup {
            user: hooks::Place {
                var: "OPENCODE_CONFIG_DIR",
                home: ".config/opencode",
                file: "plugin/rewind.ts",
            },
            project: Some(".opencode/plugin/rewind.ts"),
            form: hooks::Form::Own {
                text: include_str!("plugins/opencode.ts"),
            },
            end: None,
            then: None,
        }),
    },
    Named {
        agent: "goose",
        title: "goose",
        why: "its sessions are in a database",
        instead: "goose has no undo of its own; version control is the way back",
        places: &[
            In("GOOSE_PATH_ROOT", ".local/share/goose", "sessions"),
            In("GOOSE_PATH_ROOT", ".local/share/goose", "data/sessions"),
        ],
        files: &["sessions.db"],
        hooks: None,
    },
    Named {
        agent: "crush",
        title: "Crush",
        why: "its sessions are in a database",
        instead: "Crush has no undo of its own; its database keeps the versions of each file",
        places: &[Above(".crush/crush.db")],
        files: &["crush.db"],
        hooks: None,
    },
    Named {
        agent: "cline",
        title: "Cline",
        why: "its tasks are JSON documents that its editor extension rewrites whole",
        instead: "\"Restore\" at a checkpoint in Cline takes back files, the task or both",
        places: &[
            In("CLINE_DIR", ".cline", "data/sessions"),
            In(
                "XDG_CONFIG_HOME",
                ".config",
                "Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ),
        ],
        files: &["api_conversation_history.json", "ui_messages.json"],
        hooks: None,
    },
    Named {
        agent: "continue",
        title: "Continue",
        why: "its sessions are JSON documents that its editor extension rewrites whole",
        instead: "the editor's own undo, or \"reject\" on the edits in Continue",
        places: &[In("CONTINUE_GLOBAL_DIR", ".continue", "sessions")],
        files: &[],
        hooks: None,
    },
    Named {
        agent: "amp",
        title: "Amp",
        why: "its threads are kept on its server",
        instead: "editing an earlier message in Amp takes back what followed it",
        places: &[In("XDG_DATA_HOME", ".local/share", "amp/threads")],
        files: &[],
        hooks: Some(Setup {
            user: hooks::Place {
                var: "",
                home: ".config/amp",
                file: "plugins/rewind.ts",
            },
            project: Some(".amp/plugins/rewind.ts"),
            form: hooks::Form::Own {
                text: include_str!("plugins/amp.ts"),
            },
            end: None,
            then: None,
        }),
    },
    Named {
        agent: "aider",
        title: "Aider",
        why: "its history is a text for reading, and each of its edits is a commit",
        instead: "`/undo` in Aider, or `git revert`, takes back a commit",
        places: &[Above(".aider.chat.history.md")],
        files: &[".aider.chat.history.md"],
        hooks: None,
    },
];

impl Named {
    /// The agent of that name.
    #[must_use]
    pub fn of_agent(agent: &str) -> Option<&'static Self> {
        NAMED.iter().find(|n| n.agent == agent)
    }

    /// The agent whose session file is called so.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<&'static Self> {
        let name = path.file_name()?.to_str()?;
        let json = path.extension().is_some_and(|e| e == "json");
        let thread = json && name.starts_with("T-");
        NAMED
            .iter()
            .find(|n| n.files.contains(&name) || (thread && n.agent == "amp"))
    }

    /// Why not, and what instead, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{} is not supported: {}", self.title, self.why)
    }
}

/// Those that have left a trace: below the home folder, or in this folder and above. What cannot be looked at is not
/// there: nothing hangs on it.
#[must_use]
pub fn seen(env: &Env) -> Vec<(&'static Named, PathBuf)> {
    let first = |n: &Named| n.places.iter().find_map(|p| find(p, env));
    NAMED.iter().filter_map(|n| Some((n, first(n)?))).collect()
}

fn find(place: &Place, env: &Env) -> Option<PathBuf> {
    match place {
        In(var, below_home, path) => {
            Some(env.dir(var, below_home)?.join(path)).filter(|p| p.exists())
        }
        Above(path) => env
            .cwd
            .ancestors()
            .map(|folder| folder.join(path))
            .find(|p| p.exists()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_found_at_home_and_above_the_working_folder() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("repo/src");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(dir.path().join("home/.local/share/opencode")).unwrap();
        std::fs::write(dir.path().join("repo/.aider.chat.history.md"), "#### hi\n").unwrap();
        let env = Env {
            home: Some(dir.path().join("home")),
            cwd: deep,
            ..Env::bare()
        };
        let agents: Vec<_> = seen(&env).iter().map(|(n, _)| n.agent).collect();
        assert_eq!(agents, ["opencode", "aider"]);
    }

    #[test]
    fn a_session_file_of_such_an_agent_is_known_by_its_name() {
        let of = |p: &str| Named::of_file(Path::new(p)).map(|n| n.agent);
        assert_eq!(of("/x/opencode.db"), Some("opencode"));
        assert_eq!(of("T-1234.json"), Some("amp"));
        assert_eq!(of("T-1234.txt"), None);
        assert_eq!(of("notes.md"), None);
    }

    #[test]
    fn no_such_agent_has_the_name_of_one_that_is_read() {
        for n in NAMED {
            assert!(super::super::ALL.iter().all(|f| f.agent() != n.agent));
        }
    }
}
