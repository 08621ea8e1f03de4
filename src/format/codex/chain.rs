//! Reading a rollout with those that it builds on.
//!
//! After a revert or a fork the new rollout holds no copied history: `history_base` names another rollout and how many
//! of its bytes come first. The chain is walked to its end; a link that is missing, too short or leads back is where
//! the history stops, which is counted as a lost parent, so that the turns that are there can still be used.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::{Trouble, lines::scan};
use super::NAME;
use super::header::{Base, Header, Limit, Mode};
use super::look::STARTS;
use super::rollouts::{self, Listing, Rollout};
use super::turns::Turns;
use crate::env::Env;
use crate::model::session::{FileNo, Oddity, Session, Span, Warnings};

/// A chain is never longer than this.
const LONGEST_CHAIN: usize = 256;

/// One rollout of a chain.
pub(super) struct Link {
    pub(super) path: PathBuf,
    pub(super) header: Header,
    /// How many bytes of it belong to the session; all of the session's own file.
    pub(super) end: Option<u64>,
}

/// Finds the turns of a session.
pub(super) fn read(path: &Path, env: &Env) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let links = walk(path, env, &mut warnings)?;
    let mut turns = Turns::new();
    let mut len = 0;
    for (n, link) in links.iter().enumerate().rev() {
        let span = Span {
            file: FileNo(u16::try_from(n).unwrap_or(u16::MAX)),
            start: 0,
            end: link.end.unwrap_or(u64::MAX),
        };
        turns.enter(span.file, link.header.mode);
        len = scan(&link.path, span, &mut turns, &mut warnings).map_err(Trouble::io(&link.path))?;
        turns.leave(len);
        if link.end.is_some_and(|end| len < end) {
            warnings.add(Oddity::LostParent, span.file, len);
        }
    }
    if Rollout::is_zst(path) {
        len = std::fs::metadata(path).map_err(Trouble::io(path))?.len();
    }
    let cwd = turns.cwd.take();
    let (turns, gone) = turns.finish();
    let header = links.first().map(|l| l.header.clone()).unwrap_or_default();
    let named = Rollout::of(path).map(|r| r.thread);
    Ok(Session {
        agent: NAME,
        id: header.id.or(named).unwrap_or_default(),
        root: header.root.or(cwd),
        abandoned: gone.saturating_add(reverted(&links)?),
        files: links.into_iter().map(|l| l.path).collect(),
        turns,
        len,
        warnings,
    })
}

/// How many turns a revert left behind in the files below. What a fork's parent did later is another conversation.
fn reverted(links: &[Link]) -> Result<u32, Trouble> {
    let mut gone = 0u32;
    for pair in links.windows(2) {
        let [link, base] = pair else { continue };
        let Some(end) = base.end.filter(|_| base.header.id == link.header.id) else {
            continue;
        };
        let mut turns = Turns::new();
        turns.enter(FileNo(0), base.header.mode);
        let span = Span {
            file: FileNo(0),
            start: end,
            end: u64::MAX,
        };
        scan(&base.path, span, &mut turns, &mut Warnings::default())
            .map_err(Trouble::io(&base.path))?;
        let (kept, dropped) = turns.finish();
        let all = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        gone = gone.saturating_add(all).saturating_add(dropped);
    }
    Ok(gone)
}

/// Follows the chain from a rollout to the one that builds on nothing.
pub(super) fn walk(path: &Path, env: &Env, warnings: &mut Warnings) -> Result<Vec<Link>, Trouble> {
    let mut links = vec![link(path, None)?];
    let mut seen = HashSet::from([path.to_path_buf()]);
    let mut known: Option<Listing> = None;
    while let Some(base) = links.last().and_then(|l| l.header.base.clone()) {
        let all = known.get_or_insert_with(|| everywhere(path, env));
        let found = find(&all.found, &base.rollout);
        // What cannot be looked into may hold it: that is no absence.
        if found.is_none()
            && let Some((folder, source)) = all.unread.pop()
        {
            return Err(Trouble::Io {
                path: folder,
                source,
            });
        }
        let next = found.filter(|p| links.len() < LONGEST_CHAIN && seen.insert(p.clone()));
        let Some(next) = next else {
            let file = u16::try_from(links.len() - 1).unwrap_or(u16::MAX);
            warnings.add(Oddity::LostParent, FileNo(file), 0);
            break;
        };
        links.push(link(&next, Some(&base))?);
    }
    Ok(links)
}

fn link(path: &Path, base: Option<&Base>) -> Result<Link, Trouble> {
    let header = Header::read(path)
        .map_err(Trouble::io(path))?
        .unwrap_or_default();
    if header.mode == Mode::Unknown {
        return Err(Trouble::Newer {
            what: format!(
                "`{}` keeps its history in a way that is newer than this version knows",
                path.display()
            ),
        });
    }
    let end = base.map(|b| limit(path, b.end)).transpose()?;
    Ok(Link {
        path: path.to_path_buf(),
        header,
        end,
    })
}

/// Every rollout that could be the base of this one: in its home, in ours, beside it.
pub(super) fn everywhere(path: &Path, env: &Env) -> Listing {
    let mut all = rollouts::beside(path);
    for home in rollouts::homes(Some(path), env) {
        let more = rollouts::list(&home);
        all.found.extend(more.found);
        all.unread.extend(more.unread);
    }
    all
}

fn find(all: &[Rollout], id: &str) -> Option<PathBuf> {
    let named = || all.iter().filter(|r| r.id == id).map(|r| &r.path);
    named()
        .find(|p| !Rollout::is_zst(p))
        .or_else(|| named().next())
        .cloned()
}

/// The limit in bytes.
fn limit(path: &Path, end: Limit) -> Result<u64, Trouble> {
    let ordinal = match end {
        Limit::Byte(end) => return Ok(end),
        Limit::Ordinal(ordinal) => ordinal,
    };
    let mut visit = Ordinals {
        from: ordinal,
        first: None,
    };
    let len = scan(
        path,
        lines::whole(FileNo(0)),
        &mut visit,
        &mut Warnings::default(),
    )
    .map_err(Trouble::io(path))?;
    Ok(visit.first.unwrap_or(len))
}

/// Looks for the first record from an ordinal on.
struct Ordinals {
    from: u64,
    first: Option<u64>,
}

impl Visit for Ordinals {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        while let (None, Some(field)) = (self.first, fields.pull()?) {
            if field.is("ordinal") {
                let behind = field.value()?.u64().is_some_and(|n| n >= self.from);
                return Ok(if behind { Wants::Whole } else { Wants::No });
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, _record: &[u8], at: u64) {
        self.first.get_or_insert(at);
    }
}

/// The ordinal of the record at an offset.
pub(super) fn ordinal_at(path: &Path, at: u64) -> Option<u64> {
    use std::io::Read;
    let mut head = Vec::new();
    lines::open(path, at)
        .ok()?
        .take(4096)
        .read_to_end(&mut head)
        .ok()?;
    Value::head(&head).get("ordinal")?.u64()
}
