//! Decides what a restore does: compares what the files are to become with what stands there now. Writes nothing.

use std::collections::HashSet;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::contents::plain;
use super::plan::{Act, Bytes, Conflict, ConflictKind, Make, Missing, Plan, Point, Step};
use super::timeline::{Image, Left, Story, Timeline};
use crate::error::{Error, Kind};
use crate::fsx::hash;
use crate::fsx::tree::{FileKind, Fingerprint, Root, SafePath};
use crate::model::checkpoint::Prior;
use crate::model::edit::Reason;
use crate::model::point::{OnConflict, Scope};
use crate::model::session::Session;

/// Which paths a restore is limited to; none means all.
#[derive(Debug, Clone, Default)]
pub struct Only(Option<GlobSet>);

impl Only {
    /// Reads globs or plain paths, relative to the root. A folder stands for all that is in it.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a glob that cannot be read.
    pub fn new(root: &Path, cwd: &Path, paths: &[std::ffi::OsString]) -> Result<Self, Error> {
        if paths.is_empty() {
            return Ok(Self(None));
        }
        let mut set = GlobSetBuilder::new();
        for typed in paths {
            let full = cwd.join(typed);
            let below = full.strip_prefix(root).unwrap_or(Path::new(typed));
            let text = below.to_string_lossy();
            let text = text.trim_start_matches("./").trim_end_matches('/');
            for glob in [text.to_owned(), format!("{text}/**")] {
                let glob = GlobBuilder::new(&glob)
                    .literal_separator(true)
                    .build()
                    .map_err(|e| {
                        Error::new(Kind::Usage, format!("`{text}` is no path pattern")).because(e)
                    })?;
                set.add(glob);
            }
        }
        let set = set
            .build()
            .map_err(|e| Error::new(Kind::Usage, "too many path patterns").because(e))?;
        Ok(Self(Some(set)))
    }

    fn takes(&self, path: &Path) -> bool {
        self.0.as_ref().is_none_or(|set| set.is_match(path))
    }

    /// Whether nothing is left out.
    #[must_use]
    pub fn everything(&self) -> bool {
        self.0.is_none()
    }
}

/// Makes the code part of a plan; the conversation part is added by the caller.
#[must_use]
pub fn restore(
    root: &Root,
    session: &Session,
    point: Point,
    scope: Scope,
    timeline: Timeline,
    only: &Only,
    on_conflict: OnConflict,
) -> Plan {
    let mut plan = Plan {
        act: Act::Restore,
        root: root.path().to_path_buf(),
        point,
        scope,
        steps: Vec::new(),
        session: Vec::new(),
        equal: Vec::new(),
        conflicts: Vec::new(),
        missing: timeline
            .missing
            .into_iter()
            .filter(|m| only.takes(relative(session, &m.path)))
            .collect(),
        outside: Vec::new(),
        unsure: Vec::new(),
        gaps: timeline.gaps,
    };
    let mut decide = Decide {
        root,
        on_conflict,
        since: session.turn(plan.point.turn).and_then(|t| t.at),
        twins: twins(&timeline.stories),
        plan: &mut plan,
    };
    for story in &timeline.stories {
        if only.takes(story.path.as_path()) {
            decide.story(story);
        }
    }
    plan
}

fn relative<'p>(session: &Session, path: &'p Path) -> &'p Path {
    session
        .root
        .as_deref()
        .and_then(|r| path.strip_prefix(r).ok())
        .unwrap_or(path)
}

struct Decide<'a> {
    root: &'a Root,
    on_conflict: OnConflict,
    /// When the turn began: folders younger than this were made since.
    since: Option<chrono::DateTime<chrono::Utc>>,
    /// Files that stand under two of the paths.
    twins: HashSet<(u64, u64)>,
    plan: &'a mut Plan,
}

impl Decide<'_> {
    fn story(&mut self, story: &Story) {
        if let Some(reason) = out_of_reach(story) {
            self.plan.missing.push(Missing {
                path: story.path.as_path().to_path_buf(),
                reason,
                turn: story.turn,
            });
            return;
        }
        match &story.prior {
            Prior::Unavailable(reason) => self.plan.missing.push(Missing {
                path: story.path.as_path().to_path_buf(),
                reason: reason.clone(),
                turn: story.turn,
            }),
            Prior::Absent => self.absent(story),
            Prior::Bytes(image) => self.file(story, image),
        }
    }

    fn absent(&mut self, story: &Story) {
        if story.now.print.kind == FileKind::Absent {
            self.plan.equal.push(story.path.clone());
            return;
        }
        // In a folder that folds case the name goes only together with the file that stays (`bugs.md` 55).
        if self.twins.contains(&story.now.id) {
            self.plan.missing.push(Missing {
                path: story.path.as_path().to_path_buf(),
                reason: Reason::HardLink,
                turn: story.turn,
            });
            return;
        }
        let own = self.is_left(story);
        // A file of which it is not known what the agent left is not deleted without being asked to.
        let conflict = match own {
            Some(true) => None,
            Some(false) if story.left == Left::Absent => Some(ConflictKind::Created),
            Some(false) => Some(ConflictKind::Changed),
            None => Some(ConflictKind::NotKnown),
        };
        if let Some(why) = conflict {
            self.plan.conflicts.push(Conflict {
                path: story.path.clone(),
                why,
            });
            if self.on_conflict != OnConflict::Overwrite {
                return;
            }
        }
        let folders = self.young_folders(&story.path);
        self.step(
            story,
            story.path.clone(),
            story.now.print.clone(),
            Make::Absent(folders),
        );
    }

    fn file(&mut self, story: &Story, image: &Image) {
        let now = &story.now.print;
        let same_bytes = now.kind == FileKind::File
            && now.len == image.len
            && now.sha256 == hash::hex(&image.sha256);
        if same_bytes {
            match story
                .mode
                .map(|m| m & 0o777)
                .filter(|m| *m != now.mode & 0o777)
            {
                None => self.plan.equal.push(story.path.clone()),
                Some(mode) => {
                    self.step(story, story.path.clone(), now.clone(), Make::Mode(mode));
                }
            }
            return;
        }
        let conflict = match (self.is_left(story), now.kind, &story.left) {
            (Some(false), FileKind::Absent, _) => Some(ConflictKind::Deleted),
            (Some(false), _, Left::Absent) => Some(ConflictKind::Created),
            (Some(false), _, _) => Some(ConflictKind::Changed),
            (None, _, _) => {
                self.plan.unsure.push(story.path.clone());
                None
            }
            (Some(true), _, _) => None,
        };
        let make = |mode| Make::File {
            bytes: image.bytes.clone(),
            sha256: image.sha256,
            len: image.len,
            mode,
        };
        let gone = now.kind == FileKind::Absent;
        let mode = story
            .mode
            .or(story.mode_if_gone.filter(|_| gone).map(|m| m | 0o200));
        let mut target = (story.path.clone(), now.clone());
        if let Some(why) = conflict {
            self.plan.conflicts.push(Conflict {
                path: story.path.clone(),
                why,
            });
            match self.on_conflict {
                OnConflict::Fail | OnConflict::Keep => return,
                OnConflict::Overwrite => {}
                OnConflict::Beside => match self.beside(&story.path) {
                    Some(free) => target = (free, Fingerprint::absent()),
                    None => return,
                },
            }
        }
        self.step(story, target.0, target.1, make(mode));
    }

    fn step(&mut self, story: &Story, path: SafePath, expect: Fingerprint, make: Make) {
        for (before, after) in &story.outside {
            self.plan
                .outside
                .push((story.path.clone(), *before, *after));
        }
        self.plan.steps.push(Step {
            path,
            expect,
            make,
            source: Some(story.source),
            turn: Some(story.turn),
        });
    }

    /// Whether what stands there is what the agent last left; `None` where that is not known.
    fn is_left(&self, story: &Story) -> Option<bool> {
        let now = &story.now.print;
        match &story.left {
            Left::Unknown => None,
            Left::Absent => Some(now.kind == FileKind::Absent),
            Left::Bytes(sha) => Some(now.kind == FileKind::File && now.sha256 == hash::hex(sha)),
            Left::Text { as_is, plain: sha } => {
                if now.kind != FileKind::File {
                    return Some(false);
                }
                if now.sha256 == hash::hex(as_is) {
                    return Some(true);
                }
                // The agent's text is held in the record, so a file beyond this is not it.
                if now.len > super::contents::MOST {
                    return Some(false);
                }
                let bytes = self.root.read(&story.path).ok()?;
                Some(hash::of_bytes(&plain(&bytes)) == *sha)
            }
        }
    }

    /// The first free name of `<name>.rewind`, `<name>.rewind.1`, …
    fn beside(&self, path: &SafePath) -> Option<SafePath> {
        (0..100).find_map(|n| {
            let mut name = path.name().to_os_string();
            name.push(".rewind");
            if n > 0 {
                name.push(format!(".{n}"));
            }
            let free = path.beside(&name).ok()?;
            let look = self.root.fingerprint(&free).ok()?;
            (look.print.kind == FileKind::Absent).then_some(free)
        })
    }

    /// The folders above a file that were made since the turn began, deepest first. They are removed only if this
    /// leaves them empty. Where the file system does not keep the time, none is.
    fn young_folders(&self, path: &SafePath) -> Vec<SafePath> {
        let Some(since) = self.since else {
            return Vec::new();
        };
        path.folders()
            .into_iter()
            .take_while(|f| {
                self.root
                    .fingerprint(f)
                    .is_ok_and(|l| l.born.is_some_and(|b| b >= since))
            })
            .collect()
    }
}

/// The files that two of the paths lead to, by device and inode.
fn twins(stories: &[Story]) -> HashSet<(u64, u64)> {
    let mut seen = HashSet::new();
    let files = stories.iter().map(|s| &s.now);
    files
        .filter(|now| now.print.kind == FileKind::File)
        .filter_map(|now| (!seen.insert(now.id)).then_some(now.id))
        .collect()
}

/// What is no plain file with one name is never replaced, whatever the record says.
fn out_of_reach(story: &Story) -> Option<Reason> {
    match story.now.print.kind {
        FileKind::File if story.now.nlink > 1 => Some(Reason::HardLink),
        FileKind::Absent | FileKind::File => None,
        FileKind::Dir | FileKind::Link | FileKind::Other => Some(Reason::NotAFile),
    }
}

/// The bytes of a step as they would be written, for a diff; `None` where nothing is to be there.
///
/// # Errors
/// The source cannot be read.
pub fn new_bytes(make: &Make, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    match make {
        Make::Absent(_) | Make::Mode(_) => Ok(None),
        Make::File { bytes, .. } => {
            let bytes: &Bytes = bytes;
            let mut out = Vec::new();
            bytes.open()?.take(most + 1).read_to_end(&mut out)?;
            Ok(Some(out))
        }
    }
}
