//! What `rewind doctor` says of the session that is meant here: whether it goes back, and what stands in the way.

use crate::cmd::{Context, list, preview, report, words};
use crate::error::{Error, Result};
use crate::model::edit::GapKind;
use crate::ops::doctor::session::{Diagnosis, look};
use crate::ops::gather::Read;
use crate::ops::init;
use crate::ops::plan::{Act, Plan};
use crate::ui::json::{DoctorSession, PathOut, SessionOut};
use crate::ui::text::count;
use crate::ui::{path_text, sanitise};

/// So many paths and gaps are named; `--json` has all.
const MOST: usize = 10;

/// A session, or why there is none.
pub(super) type Looked = std::result::Result<(Read, Diagnosis), Error>;

/// Looks at the session that is meant.
///
/// # Errors
/// One was named, and it is not there.
pub(super) fn of(ctx: &mut Context<'_>) -> Result<Looked> {
    let read = match ctx.read(None) {
        Ok(read) => read,
        Err(e) if ctx.global.session.is_none() => return Ok(Err(e)),
        Err(e) => return Err(e),
    };
    let diagnosis = look(&read, ctx.env, ctx.global.workspace.as_deref());
    Ok(Ok((read, diagnosis)))
}

/// In words.
pub(super) fn text(looked: &Looked) -> String {
    let (read, diagnosis) = match looked {
        Ok(found) => found,
        Err(e) => return row("session", &format!("none: {}", sanitise(&e.message))),
    };
    let id = sanitise(&read.session.id);
    let turns = count(read.session.turns.len(), "turn", "turns");
    let title = read.format.title();
    let mut text = row("session", &format!("{id} of {title}, {turns}"));
    if let Some(sign) = &diagnosis.live {
        let words = format!(
            "at work on it: {}; end it before the conversation goes back",
            sanitise(sign)
        );
        text.push_str(&row("agent", &words));
    }
    let talk = match &diagnosis.conversation {
        None => "goes back to before any turn".to_owned(),
        Some(e) => format!("does not go back: {}", sanitise(&e.message)),
    };
    text.push_str(&row("conversation", &talk));
    match &diagnosis.code {
        Ok(plan) => text.push_str(&code(plan)),
        Err(e) => text.push_str(&row(
            "code",
            &format!("does not go back: {}", sanitise(&e.message)),
        )),
    }
    text
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<16} {value}\n")
}

fn code(plan: &Plan) -> String {
    let whole = plan.missing.is_empty() && plan.conflicts.is_empty();
    let words = match (whole, plan.gaps.is_empty()) {
        (true, true) => "goes back to before any turn, all of it".to_owned(),
        (true, false) => "goes back, but for what was not recorded:".to_owned(),
        (false, _) => {
            let n = plan.missing.len() + plan.conflicts.len();
            format!("goes back, but not {}:", count(n, "file", "files"))
        }
    };
    let missing = plan.missing.iter().map(|m| {
        let why = words::reason(&m.reason);
        format!("  turn {}: {}: {why}\n", m.turn, path_text(&m.path))
    });
    let conflicts = plan.conflicts.iter().map(|c| {
        let why = words::conflict(c.why, &Act::Restore);
        format!("  {}: {why}\n", path_text(c.path.as_path()))
    });
    let all: Vec<String> = missing.chain(conflicts).collect();
    let mut text = row("code", &words);
    text.extend(all.iter().take(MOST).map(String::as_str));
    if let Some(more) = all.len().checked_sub(MOST).filter(|n| *n > 0) {
        text.extend(["  and ", &more.to_string(), " more (`--json` has all)\n"]);
    }
    text + &preview::gaps(&plan.gaps, MOST)
}

/// The command for each problem.
pub(super) fn hints(ctx: &mut Context<'_>, looked: &Looked) {
    let (read, diagnosis) = match looked {
        Ok(found) => found,
        Err(e) => return e.hints.iter().for_each(|h| ctx.ui.hint(h)),
    };
    let plan = match &diagnosis.code {
        Ok(plan) => plan,
        Err(e) => return e.hints.iter().for_each(|h| ctx.ui.hint(h)),
    };
    if let Some(e) = &diagnosis.conversation {
        e.hints.iter().for_each(|h| ctx.ui.hint(h));
    }
    if !plan.conflicts.is_empty() {
        let show = format!("show {}", plan.point.turn);
        let show = ctx.command(&show, ctx.global.session.as_deref());
        ctx.ui.hint(&format!(
            "`{show}` shows what differs; `--on-conflict` says what to do with it"
        ));
    }
    let agent = read.format.agent();
    if !init::agents(ctx.env).contains(&agent) {
        return;
    }
    let shell = plan.gaps.iter().any(|g| g.kind == GapKind::Shell);
    if shell {
        ctx.ui.hint(&format!(
            "`rewind init {agent} --git` captures also what shell commands do, from then on"
        ));
    } else if !plan.missing.is_empty() || !plan.gaps.is_empty() {
        ctx.ui.hint(&format!(
            "`rewind init {agent}` captures each file before it is changed, from then on"
        ));
    }
}

/// As JSON.
pub(super) fn out(looked: &Looked) -> Option<DoctorSession> {
    let (read, diagnosis) = looked.as_ref().ok()?;
    let plan = diagnosis.code.as_ref().ok();
    let session = &read.session;
    Some(DoctorSession {
        session: SessionOut {
            agent: session.agent.to_owned(),
            id: session.id.clone(),
            path: PathOut::new(session.path()),
            workspace: session
                .root
                .as_ref()
                .map(|r| r.to_string_lossy().into_owned()),
        },
        turns: session.turns.len(),
        live: diagnosis.live.is_some(),
        conversation: diagnosis.conversation.as_ref().map(|e| e.message.clone()),
        code: diagnosis.code.as_ref().err().map(|e| e.message.clone()),
        missing: plan.map(report::missing).unwrap_or_default(),
        conflicts: plan.map(report::conflicts).unwrap_or_default(),
        gaps: plan.map_or_else(Vec::new, |p| p.gaps.iter().map(list::gap_out).collect()),
    })
}
