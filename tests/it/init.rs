//! `rewind init` and `rewind deinit` on settings as people have them: what is not ours keeps every byte.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use insta::assert_snapshot;

use crate::env::{TestEnv, Tree};

/// Every agent that has hooks, its settings file, and settings with comments and foreign hooks where the agent takes them.
const SETTINGS: [(&str, &str, &str); 12] = [
    ("claude", ".claude/settings.json", GROUPS),
    ("codex", ".codex/hooks.json", GROUPS),
    ("gemini", ".gemini/settings.json", GROUPS),
    ("qwen", ".qwen/settings.json", GROUPS),
    ("droid", ".factory/settings.json", GROUPS),
    ("copilot", ".copilot/hooks/rewind.json", FLAT),
    ("cursor", ".cursor/hooks.json", FLAT),
    ("kimi", ".kimi-code/config.toml", TABLES),
    ("kimi-cli", ".kimi/config.toml", TABLES),
    ("pi", ".pi/agent/extensions/rewind.ts", ""),
    ("opencode", ".config/opencode/plugin/rewind.ts", ""),
    ("amp", ".config/amp/plugins/rewind.ts", ""),
];

const GROUPS: &str = r#"{
	// mine, with a tab
	"model": "opus", /* the best */
	"hooks": {
		"PreToolUse": [
			{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "lint hook x" }] } // keep
		],
		"Stop": []
	},
	"z": [1.0, 1e3]
}
"#;

const FLAT: &str =
    r#"{ "version": 1, "hooks": { "preToolUse": [{ "bash": "other", "command": "other" }] } }"#;

const TABLES: &str =
    "default_model = 'm' # mine\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"other\"\n\n# the end\n";

fn file(env: &TestEnv, path: &str) -> PathBuf {
    env.home().join(path)
}

fn put(env: &TestEnv, path: &str, text: &str) -> PathBuf {
    let path = file(env, path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn done(env: &TestEnv, args: &[&str]) -> String {
    let run = env.run(args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.text());
    run.text()
}

#[test]
fn what_was_there_before_is_there_again_for_each_agent() {
    for (agent, path, text) in SETTINGS {
        let env = TestEnv::new();
        // Nothing there at all.
        done(&env, &["init", agent]);
        assert!(file(&env, path).is_file(), "{agent}");
        done(&env, &["deinit", agent]);
        assert!(!file(&env, path).exists(), "{agent}");
        if text.is_empty() {
            continue;
        }
        let settings = put(&env, path, text);
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o640)).unwrap();
        done(&env, &["init", agent]);
        let with = fs::read(&settings).unwrap();
        assert_ne!(with, text.as_bytes(), "{agent}");
        let mode = fs::metadata(&settings).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        // Once more changes nothing.
        let again = done(&env, &["init", agent]);
        assert!(again.contains("already"), "{again}");
        assert_eq!(fs::read(&settings).unwrap(), with, "{agent}");
        done(&env, &["deinit", agent]);
        assert_eq!(fs::read_to_string(&settings).unwrap(), text, "{agent}");
        let nothing = done(&env, &["deinit", agent]);
        assert!(nothing.contains("no hooks of ours"), "{nothing}");
    }
}

#[test]
fn from_settings_that_changed_since_only_our_entries_go() {
    for (agent, path, text) in SETTINGS {
        if text.is_empty() {
            continue;
        }
        let env = TestEnv::new();
        let settings = put(&env, path, text);
        done(&env, &["init", agent]);
        // The user goes on with the file, and the bytes that were saved are no longer its own.
        let more = |t: &str| t.replace("other", "another").replace("lint", "lint2");
        fs::write(&settings, more(&fs::read_to_string(&settings).unwrap())).unwrap();
        done(&env, &["deinit", agent]);
        assert_eq!(
            fs::read_to_string(&settings).unwrap(),
            more(text),
            "{agent}"
        );
    }
}

#[test]
fn settings_that_cannot_be_parsed_are_not_touched() {
    let env = TestEnv::new();
    for (agent, path, _) in SETTINGS {
        for odd in ["{ \"a\": ", "\u{0}", "[1", "= =", "{\"hooks\": 7}"] {
            let settings = put(&env, path, odd);
            let run = env.run(&["init", agent]);
            assert_eq!(run.code, Some(6), "{agent}: {}", run.text());
            assert_eq!(fs::read_to_string(&settings).unwrap(), odd);
        }
    }
    put(&env, ".claude/settings.json", "{ \"a\": 1,, }\n");
    assert_snapshot!(env.run(&["init", "claude"]).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: the settings are not touched
      [HOME]/.claude/settings.json: it is no JSON: key must be a string at line 1 column 12
    nothing was changed
    hint: mend the file and run the command again
    ");
    assert_snapshot!(env.run(&["init", "vibe"]).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: Mistral Vibe has no hooks that are known
    nothing was changed
    hint: hooks are known of: codex, copilot, pi, droid, gemini, kimi, kimi-cli, qwen, claude, cursor, opencode, amp
    ");
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let env = TestEnv::new();
    let settings = put(&env, ".codex/hooks.json", "{\n  \"a\": 1\n}\n");
    let before = (Tree::of(&env.home()), Tree::of(&env.state()));
    let run = env.run(&["init", "codex", "--dry-run"]);
    // Where the program lies differs.
    let text = run.text();
    let program = text
        .split('"')
        .find(|w| w.ends_with(" hook codex"))
        .unwrap()
        .to_owned();
    assert_snapshot!(text.replace(&program, "rewind hook codex"), @r#"
    exit: 0
    --- stdout
    --- [HOME]/.codex/hooks.json
    +++ [HOME]/.codex/hooks.json
    @@ -1,3 +1,14 @@
     {
    -  "a": 1
    +  "a": 1,
    +  "hooks": {
    +    "UserPromptSubmit": [
    +      { "hooks": [{ "type": "command", "command": "rewind hook codex", "timeout": 10 }] }
    +    ],
    +    "PreToolUse": [
    +      { "hooks": [{ "type": "command", "command": "rewind hook codex", "timeout": 10 }] }
    +    ],
    +    "PostToolUse": [
    +      { "hooks": [{ "type": "command", "command": "rewind hook codex", "timeout": 10 }] }
    +    ]
    +  }
     }
    --- stderr
    would add the hooks to [HOME]/.codex/hooks.json
    start Codex, type `/hooks` and trust them: until then it leaves them out without a word
    "#);
    assert_eq!(before, (Tree::of(&env.home()), Tree::of(&env.state())));
    assert!(settings.is_file());
}

#[test]
fn a_link_to_settings_stays_a_link() {
    let env = TestEnv::new();
    let real = env.home().join("dotfiles.json");
    fs::write(&real, "{}\n").unwrap();
    fs::create_dir_all(env.home().join(".claude")).unwrap();
    let link = file(&env, ".claude/settings.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    done(&env, &["init", "claude"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains(" hook claude"));
    done(&env, &["deinit", "claude"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}\n");
}

#[test]
fn a_projects_settings_are_those_of_the_folder() {
    let env = TestEnv::new();
    done(&env, &["init", "claude", "--project"]);
    let own = env.workspace().join(".claude/settings.json");
    assert!(own.is_file() && !file(&env, ".claude/settings.json").exists());
    done(&env, &["deinit", "claude", "--project"]);
    assert!(!own.exists());
    let none = env.run(&["init", "kimi", "--project"]);
    assert_eq!(none.code, Some(6), "{}", none.text());
}

#[test]
fn a_file_of_the_users_own_is_not_taken_for_ours() {
    let env = TestEnv::new();
    let own = put(&env, ".pi/agent/extensions/rewind.ts", "// my own\n");
    let run = env.run(&["init", "pi"]);
    assert_eq!(run.code, Some(6), "{}", run.text());
    done(&env, &["deinit", "pi"]);
    assert_eq!(fs::read_to_string(&own).unwrap(), "// my own\n");
}
