//! Doing a plan. Each sidecar under the lock that hooks take, and in an order that a kill at any moment leaves right: the
//! records get a name that says that they are going, the contents that nothing else names go, then the records. After a
//! power cut a record may be back whose contents are gone, and says so; what stays never needs them. The newest stays as a record of what was pruned. A run that finds such names finishes them. Nothing is
//! written but names, so a full disk is no reason not to.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::find::Store;
use super::removals::{Removal, Removed};
use super::{Digests, Item, Plan, StorePlan, Verdict, Why};
use crate::ckpt::kept::{self, PRUNED, PRUNING, QUARANTINE};
use crate::env::Env;
use crate::fsx::lock::{self, Lock};
use crate::fsx::{Disk, Name, durable, sys};
use crate::ops::apply::each;
use crate::ops::journal::time;

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Done {
    /// What was removed, by place.
    pub removals: Vec<Removal>,
    /// Places of which not all that was planned is removed, and why.
    pub left: Vec<(std::path::PathBuf, String)>,
}

impl Done {
    /// How many bytes the disk got back.
    #[must_use]
    pub fn freed(&self) -> u64 {
        self.removals.iter().map(|r| r.freed).sum()
    }
}

/// Removes what the plan says of sidecars; `told` hears how many of them are done.
pub fn stores(plan: &Plan, env: &Env, disk: &dyn Disk, told: &(dyn Fn(u64) + Sync)) -> Done {
    let going: Vec<&StorePlan> = plan.stores.iter().filter(|s| s.goes()).collect();
    let count = AtomicU64::new(0);
    let remove = |plan: &StorePlan| Sidecar::begin(plan, disk)?.finish(disk);
    let removed = each::map(&going, |_, plan| {
        let freed = remove(plan);
        told(count.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(freed)
    });
    let mut done = Done::default();
    let removed = removed.into_iter().flatten();
    for (plan, freed) in going.iter().zip(removed) {
        match freed {
            Ok(freed) => done.removals.push(removal(plan, freed, env)),
            Err(e) => done.left.push((plan.store.folder.clone(), e.to_string())),
        }
    }
    done
}

struct Sidecar<'p> {
    plan: &'p StorePlan,
    folder: OwnedFd,
    _lock: Lock,
}

impl<'p> Sidecar<'p> {
    /// Locks it and marks what goes.
    fn begin(plan: &'p StorePlan, disk: &dyn Disk) -> io::Result<Self> {
        let folder = open(&plan.store)?;
        let lock = lock::take(disk, folder.as_fd(), OsStr::new("lock"))?;
        let lock = lock.ok_or_else(|| busy("a hook is at work on it"))?;
        let now = kept::list(&plan.store.folder)?;
        if !is_still(plan, &now) {
            return Err(busy("it changed since it was looked at"));
        }
        for item in plan.items.iter().filter(|i| i.verdict.goes()) {
            let record = OsString::from(format!("turn-{}.json", item.turn));
            let there = now.turns.get(&item.turn).and_then(|f| f.record.as_ref());
            if there.is_none() {
                continue;
            }
            if let Verdict::Quarantine(_) = item.verdict {
                quarantine(&folder, &record, disk)?;
                continue;
            }
            let going = OsString::from(format!("turn-{}.{PRUNING}", item.turn));
            disk.rename(Name::new(&folder, &record), Name::new(&folder, &going))?;
            disk.reach("prune-marked");
        }
        Ok(Self {
            plan,
            folder,
            _lock: lock,
        })
    }

    /// Removes what goes; returns how many bytes that freed.
    fn finish(&self, disk: &dyn Disk) -> io::Result<u64> {
        disk.reach("prune-all-marked");
        let mut freed = self.blobs(disk)?;
        freed += self.records(disk)?;
        if self.plan.whole {
            self.rest(disk)?;
        }
        Ok(freed)
    }

    /// Contents that nothing names that is there now: what the plan saw is looked at again, under the lock. Folders that are
    /// empty then go too. No link is followed.
    fn blobs(&self, disk: &dyn Disk) -> io::Result<u64> {
        let gone = self.still_gone()?;
        let begun = |i: &Item| i.verdict == Verdict::Remove(Why::Begun);
        if gone.is_empty() && !self.plan.items.iter().any(begun) {
            return Ok(0);
        }
        let Some(top) = step(self.folder.as_fd(), OsStr::new("blobs"))? else {
            return Ok(0);
        };
        let mut freed = 0;
        for a in durable::names(top.as_fd())? {
            let Some(above) = step(top.as_fd(), &a)? else {
                continue;
            };
            for b in durable::names(above.as_fd())? {
                let Some(dir) = step(above.as_fd(), &b)? else {
                    continue;
                };
                freed += unnamed(&dir, &gone, disk)?;
                tidy(Name::new(&above, &b), disk)?;
            }
            tidy(Name::new(&top, &a), disk)?;
        }
        Ok(freed)
    }

    fn still_gone(&self) -> io::Result<Digests> {
        let path = &self.plan.store.folder;
        let mut gone = self.plan.gone.clone();
        for files in kept::list(path)?.turns.into_values() {
            if let Some(name) = files.record {
                for named in kept::named_in(&std::fs::read(path.join(name))?) {
                    gone.remove(&named);
                }
            }
        }
        Ok(gone)
    }

    fn records(&self, disk: &dyn Disk) -> io::Result<u64> {
        let mut freed = 0;
        let listing = kept::list(&self.plan.store.folder)?;
        let newest = listing.pruning.iter().chain(&listing.pruned).max().copied();
        let gone = |item: &&Item| item.verdict.goes();
        for item in self.plan.items.iter().filter(gone) {
            if matches!(item.verdict, Verdict::Remove(_)) {
                freed += item.bytes;
            }
            if let Some(files) = listing.turns.get(&item.turn) {
                for name in &files.missed {
                    durable::remove(disk, Name::new(&self.folder, name))?;
                }
            }
        }
        let stays = newest.filter(|_| !self.plan.whole);
        let all = listing.pruned.iter().map(|t| (*t, PRUNED));
        let all = all.chain(listing.pruning.iter().map(|t| (*t, PRUNING)));
        for (turn, ending) in all {
            let name = OsString::from(format!("turn-{turn}.{ending}"));
            if Some(turn) != stays {
                durable::remove(disk, Name::new(&self.folder, &name))?;
            } else if ending == PRUNING {
                let record = OsString::from(format!("turn-{turn}.{PRUNED}"));
                freed = freed.saturating_sub(size(self.folder.as_fd(), &name));
                disk.rename(
                    Name::new(&self.folder, &name),
                    Name::new(&self.folder, &record),
                )?;
            }
            disk.reach("prune-record");
        }
        Ok(freed)
    }

    /// What is left of a sidecar that goes whole. What is not ours keeps the folder.
    fn rest(&self, disk: &dyn Disk) -> io::Result<()> {
        // Empty by now, or not, and then it stays.
        let _ = disk.remove_folder(Name::new(&self.folder, "blobs"));
        for name in ["current.json", "lock", "index.json"] {
            durable::remove(disk, Name::new(&self.folder, name))?;
        }
        let (Some(above), Some(name)) = (
            self.plan.store.folder.parent(),
            self.plan.store.folder.file_name(),
        ) else {
            return Ok(());
        };
        let above = sys::open_folder(above)?;
        match disk.remove_folder(Name::new(&above, name)) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => other,
        }
    }
}

/// The folder of that name; `None` where there is none, or something else.
fn step(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    match sys::open_by_steps(dir, Path::new(name)) {
        Ok(folder) => Ok(Some(folder)),
        Err(e) if matches!(sys::stat(dir, name), Ok(m) if m.is_dir()) => Err(e),
        Err(_) => Ok(None),
    }
}

/// Removes the contents in one folder that are among these; returns how many bytes that freed.
fn unnamed(dir: &OwnedFd, gone: &Digests, disk: &dyn Disk) -> io::Result<u64> {
    let mut freed = 0;
    for name in durable::names(dir.as_fd())? {
        if kept::content(&name).is_some_and(|d| gone.contains(&d)) {
            freed += size(dir.as_fd(), &name);
            disk.unlink(Name::new(dir, &name))?;
            disk.reach("prune-blob");
        }
    }
    Ok(freed)
}

/// Removes a folder that is empty.
fn tidy(folder: Name<'_>, disk: &dyn Disk) -> io::Result<()> {
    match disk.remove_folder(folder) {
        Err(e)
            if !matches!(
                e.kind(),
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
            ) =>
        {
            Err(e)
        }
        _ => Ok(()),
    }
}

fn size(folder: BorrowedFd<'_>, name: &OsStr) -> u64 {
    sys::stat(folder, name).map_or(0, |m| kept::on_disk(&m))
}

/// The sidecar itself and no link to one.
fn open(store: &Store) -> io::Result<OwnedFd> {
    let above = store.folder.parent().unwrap_or(Path::new("/"));
    let above = sys::open_folder(above)?;
    let name = store.folder.file_name().unwrap_or_default();
    sys::open_by_steps(above.as_fd(), Path::new(name))
}

fn busy(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, words)
}

/// Whether what goes is what the plan saw.
fn is_still(plan: &StorePlan, now: &kept::Listing) -> bool {
    let goes = plan.items.iter().filter(|i| i.verdict.goes());
    let mut goes = goes.filter(|i| i.verdict != Verdict::Remove(Why::Begun));
    goes.all(|item| {
        let there = now.turns.get(&item.turn);
        there.is_some_and(|f| f.modified == item.modified && !f.odd)
    })
}

/// Moves a record that cannot be read where it is not read any more, under a name that says why.
fn quarantine(folder: &OwnedFd, record: &OsStr, disk: &dyn Disk) -> io::Result<()> {
    let to = durable::subfolder(disk, folder.as_fd(), OsStr::new(QUARANTINE))?;
    for n in 0..1000 {
        let mut name = record.to_os_string();
        name.push(".unreadable");
        if n > 0 {
            name.push(format!("-{n}"));
        }
        match disk.rename_new(Name::new(folder, record), Name::new(&to, &name)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn removal(plan: &StorePlan, freed: u64, env: &Env) -> Removal {
    let what = plan.items.iter().filter_map(|item| {
        let why = match item.verdict {
            Verdict::Keep(_) => return None,
            Verdict::Quarantine(_) => "unreadable",
            Verdict::Remove(why) => word(why),
        };
        Some(Removed {
            checkpoint: Some(item.turn),
            operation: None,
            why: why.to_owned(),
        })
    });
    let mut removal = Removal::new(time(env.now), &plan.store.folder, what.collect(), freed);
    if let Some(found) = &plan.store.session {
        removal.session = Some(found.card.id.clone());
        removal.agent = Some(found.format.agent().to_owned());
    }
    removal
}

/// A reason as it is recorded.
#[must_use]
pub fn word(why: Why) -> &'static str {
    match why {
        Why::Old => "old",
        Why::Size => "size",
        Why::Begun => "begun",
    }
}
