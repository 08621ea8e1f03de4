//! The bytes of a fork: a range of a session file with single JSON values exchanged, in the records that own them and
//! nowhere else. What is not exchanged is named by its place and copied later, to the last bit.

use std::path::Path;
use std::sync::Arc;

use super::Trouble;
use super::json::{Scan, Value};
use super::lines::{self, Visit, Wants};
use crate::model::cut::FileChange;
use crate::model::fork::Piece;
use crate::model::session::{FileNo, Oddity, Span, Warnings};

/// Values to exchange in one record, in the order of the record.
#[derive(Debug, Default)]
pub(super) struct Swaps {
    found: Vec<(usize, usize, Arc<[u8]>)>,
    /// The record is left out, with its line end.
    drop: bool,
}

impl Swaps {
    /// Puts another JSON token in the place of a value.
    pub(super) fn put(&mut self, value: &Value<'_>, token: &Arc<[u8]>) {
        self.found.push((value.start, value.end, Arc::clone(token)));
    }

    /// Puts a token in the place of a string member that is this text; any other value stays.
    pub(super) fn member(&mut self, of: &Value<'_>, name: &str, is: &str, token: &Arc<[u8]>) {
        if let Some(value) = of.get(name).filter(|v| v.is_str(is)) {
            self.put(&value, token);
        }
    }

    /// Gives an object a member of this value: in the place of the old one, else as its first.
    pub(super) fn set(&mut self, of: &Value<'_>, name: &str, token: &Arc<[u8]>) {
        match of.member(name) {
            Some(old) => self.put(&old, token),
            None => self.insert(
                of.start + 1,
                &[format!("\"{name}\":").as_bytes(), token, b","].concat(),
            ),
        }
    }

    /// Puts text at an offset of the record.
    pub(super) fn insert(&mut self, at: usize, text: &[u8]) {
        self.found.push((at, at, text.into()));
    }

    /// Leaves the whole line out.
    pub(super) fn leave_out(&mut self) {
        self.drop = true;
    }
}

/// A small JSON document with the values exchanged that `find` names; `None` when it is none.
pub(super) fn document(bytes: &[u8], find: impl FnOnce(&Value<'_>, &mut Swaps)) -> Option<Vec<u8>> {
    let lead = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let record = bytes.get(lead..)?;
    let value = Value::of(record).filter(Value::is_object)?;
    let mut swaps = Swaps::default();
    find(&value, &mut swaps);
    swaps.found.sort_by_key(|(s, ..)| *s);
    let mut out = bytes.get(..lead)?.to_vec();
    let mut done = 0;
    for (s, e, with) in swaps.found {
        out.extend_from_slice(record.get(done..s)?);
        out.extend_from_slice(&with);
        done = e;
    }
    out.extend_from_slice(record.get(done..)?);
    // What is not JSON any more, an object without members say, is better not written.
    serde_json::from_slice::<serde::de::IgnoredAny>(&out).ok()?;
    Some(out)
}

/// Reads a small side file whole; `None` when it is not there.
///
/// # Errors
/// [`Trouble::Io`] when it cannot be read, or is longer than any such file.
pub(super) fn side_file(path: &Path) -> Result<Option<Vec<u8>>, Trouble> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Trouble::io(path))?,
    };
    lines::read_whole(path, lines::LONGEST)
        .map(Some)
        .map_err(Trouble::io(path))
}

/// Where a file ends that a cut only makes shorter: there its fork ends too.
///
/// # Errors
/// [`Trouble::Refused`] where the cut does anything else.
pub(super) fn end_of(cut: &[FileChange]) -> Result<u64, Trouble> {
    match cut {
        [FileChange::Truncate { keep, .. }] => Ok(*keep),
        _ => Err(Trouble::Refused {
            why: "the session cannot be forked before this turn".to_owned(),
        }),
    }
}

/// A text as a JSON string token.
pub(super) fn token(text: &str) -> Arc<[u8]> {
    serde_json::Value::from(text)
        .to_string()
        .into_bytes()
        .into()
}

/// The pieces of `start..end` of a JSONL file, with the values exchanged that `find` names in each whole record.
/// Lines that are no JSON stay as they are.
///
/// # Errors
/// [`Trouble::Io`]; [`Trouble::Refused`] when a record is too long to be read whole, so that its ids would stay.
pub(super) fn pieces(
    path: &Path,
    (start, end): (u64, u64),
    find: &mut dyn FnMut(&Value<'_>, &mut Swaps),
) -> Result<Vec<Piece>, Trouble> {
    let span = Span {
        file: FileNo(0),
        start,
        end,
    };
    let mut pass = Pass {
        from: path.into(),
        done: start,
        line: Vec::new(),
        drop: false,
        find,
        out: Vec::new(),
    };
    let mut warnings = Warnings::default();
    lines::scan(path, span, &mut pass, &mut warnings).map_err(Trouble::io(path))?;
    if warnings.count(Oddity::HugeLine) > 0 {
        return Err(Trouble::Refused {
            why: "a record of the kept turns is too long to be read whole, so its ids cannot be changed".to_owned(),
        });
    }
    pass.copy_to(end);
    Ok(pass.out)
}

struct Pass<'f> {
    from: Arc<Path>,
    /// Up to this offset all bytes are in `out`.
    done: u64,
    /// The exchanges of the line at hand, as offsets of the file.
    line: Vec<(u64, u64, Arc<[u8]>)>,
    drop: bool,
    find: &'f mut dyn FnMut(&Value<'_>, &mut Swaps),
    out: Vec<Piece>,
}

impl Pass<'_> {
    fn copy_to(&mut self, end: u64) {
        if end > self.done {
            self.out.push(Piece::Copy {
                from: Arc::clone(&self.from),
                start: self.done,
                end,
            });
            self.done = end;
        }
    }
}

impl Visit for Pass<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        &[]
    }

    fn wants(&mut self, _head: &[u8]) -> Scan<Wants> {
        Ok(Wants::Whole)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let Some(value) = Value::of(record) else {
            return;
        };
        let mut swaps = Swaps::default();
        (self.find)(&value, &mut swaps);
        self.drop |= swaps.drop;
        let place = |(s, e, with): (usize, usize, _)| (at + s as u64, at + e as u64, with);
        self.line.extend(swaps.found.into_iter().map(place));
    }

    fn line_done(&mut self, start: u64, end: u64) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.drop) {
            self.copy_to(start);
            self.done = end;
            return;
        }
        line.sort_by_key(|(s, ..)| *s);
        for (s, e, with) in line {
            self.copy_to(s);
            self.out.push(Piece::Text(with));
            self.done = e.max(self.done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(text: &str, find: &mut dyn FnMut(&Value<'_>, &mut Swaps)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut out = Vec::new();
        for piece in pieces(&path, (0, text.len() as u64), find).unwrap() {
            match piece {
                Piece::Copy { start, end, .. } => {
                    out.extend(lines::read_span(&path, start, end).unwrap());
                }
                Piece::Text(t) => out.extend_from_slice(&t),
                Piece::Whole(_) => panic!("no whole file is asked for"),
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_id_changes_where_the_record_owns_it_and_in_no_text() {
        let text = concat!(
            "{\"id\":\"old\",\"text\":\"old \\\"id\\\":\\\"old\\\"\"}\n",
            "no json with \"id\":\"old\"\n",
            "\n",
            "{\"n\":1.0,\"id\" : \"old\"}{\"id\":\"old\"}\r\n",
            "{\"id\":\"other\"}\n{\"id\":\"old\"",
        );
        let new = token("n\"ew");
        let out = spliced(text, &mut |r, s| s.member(r, "id", "old", &new));
        let want = concat!(
            "{\"id\":\"n\\\"ew\",\"text\":\"old \\\"id\\\":\\\"old\\\"\"}\n",
            "no json with \"id\":\"old\"\n",
            "\n",
            "{\"n\":1.0,\"id\" : \"n\\\"ew\"}{\"id\":\"n\\\"ew\"}\r\n",
            "{\"id\":\"other\"}\n{\"id\":\"old\"",
        );
        assert_eq!(out, want);
    }

    #[test]
    fn a_line_that_is_left_out_takes_its_end_with_it() {
        let text = "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n";
        let out = spliced(text, &mut |r, s| {
            if r.get("b").is_some() {
                s.leave_out();
            }
        });
        assert_eq!(out, "{\"a\":1}\n{\"c\":3}\n");
    }
}
