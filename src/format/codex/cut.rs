//! Where a conversation may be cut in place. A cut keeps the bytes before the turn; ordinals stay contiguous and Codex
//! resumes such a file (`formats/measured.md`, "What cutting does"). It is refused wherever another file counts on the
//! bytes that would go. Rollback markers need no care: one that stands behind the cut goes with it, and could not have
//! taken back a turn before the cut without taking this one back too.

use std::path::Path;

use super::super::Trouble;
use super::chain;
use super::header::{Base, Header, Limit};
use super::rollouts::Rollout;
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::session::{FileNo, Session};

/// What must change so that the conversation ends before this turn.
pub(super) fn plan(session: &Session, turn: u32, env: &Env) -> Result<Vec<FileChange>, Trouble> {
    let path = session.path();
    let Some(turn) = session.turn(turn) else {
        return refuse(format!("the session has no turn {turn}"));
    };
    if turn.span.file != FileNo(0) {
        return fork_instead(format!(
            "turn {} lies in the rollout that this one builds on (history_base), which is never changed",
            turn.no
        ));
    }
    if Rollout::is_zst(path) {
        return fork_instead("the rollout is compressed".to_owned());
    }
    let keep = turn.span.start;
    if keep == 0 {
        return refuse("the rollout has no header, so nothing would be left to resume".to_owned());
    }
    let header = Header::read(path).map_err(Trouble::io(path))?;
    let header = header.unwrap_or_default();
    if header.base.is_some() && session.files.len() < 2 {
        return refuse("the rollout that this one builds on (history_base) is missing, so Codex could not resume the rest".to_owned());
    }
    counted_on(path, &header, keep, env)?;
    Ok(vec![FileChange::Truncate {
        path: path.to_path_buf(),
        keep,
        len: session.len,
    }])
}

fn refuse<T>(why: String) -> Result<T, Trouble> {
    Err(Trouble::Refused { why })
}

/// A refusal where a fork is the way.
fn fork_instead<T>(why: String) -> Result<T, Trouble> {
    Err(Trouble::ForkInstead { why })
}

/// Refuses when another rollout counts on bytes behind the cut, or when that cannot be ruled out.
fn counted_on(path: &Path, header: &Header, keep: u64, env: &Env) -> Result<(), Trouble> {
    let own = Rollout::of(path);
    let listing = chain::everywhere(path, env);
    if let Some((folder, e)) = listing.unread.first() {
        return fork_instead(format!(
            "`{}` cannot be read ({e}), so it is not known whether another rollout builds on this one",
            folder.display()
        ));
    }
    let others = || listing.found.iter().filter(|r| r.path != path);
    if let Some(own) = &own
        && let Some(newer) = others().find(|r| r.thread == own.thread && own.age(r).is_lt())
    {
        return refuse(format!(
            "`{}` is the current rollout of this thread; a cut of an older one would change nothing that Codex shows",
            newer.path.display()
        ));
    }
    let ids: Vec<&str> = own
        .iter()
        .map(|o| o.id.as_str())
        .chain(header.id.as_deref().filter(|_| own.is_none()))
        .collect();
    for other in others() {
        needs(path, &ids, keep, &other.path)?;
    }
    Ok(())
}

/// Refuses when this other rollout builds on bytes behind the cut.
fn needs(path: &Path, ids: &[&str], keep: u64, other: &Path) -> Result<(), Trouble> {
    let base = match Header::read(other) {
        Ok(header) => header.and_then(|h| h.base),
        // It went away since it was listed.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => {
            return fork_instead(format!(
                "`{}` cannot be read ({e}), so it is not known whether it builds on this rollout",
                other.display()
            ));
        }
    };
    let Some(base) = base.filter(|b| ids.contains(&b.rollout.as_str())) else {
        return Ok(());
    };
    if reaches(&base, path, keep) {
        return fork_instead(format!(
            "`{}` builds on this rollout beyond the cut (history_base), so it would lose its beginning",
            other.display()
        ));
    }
    Ok(())
}

fn reaches(base: &Base, path: &Path, keep: u64) -> bool {
    match base.end {
        Limit::Byte(end) => end > keep,
        // Without ordinals nothing proves that it stops before the cut.
        Limit::Ordinal(end) => chain::ordinal_at(path, keep).is_none_or(|at| end > at),
    }
}
