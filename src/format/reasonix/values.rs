//! A stream of JSON values, as Reasonix reads its files: a value may span lines and share them with others.
//!
//! ```text
//! {"role":"user","content":"a"}{"role":"assistant",
//!  "content":"b"}
//! ```
//!
//! Two ways of cutting the stream: [`Cut::Values`] hands out each value of a `.jsonl`; [`Cut::Messages`] hands out each
//! message inside the records of an event log, and then the record with a `0` in the place of each message. Memory is one
//! value, up to [`lines::LONGEST`]. Is no validator: the caller checks what it takes.

use std::io::{self, Read};
use std::path::Path;

use crate::format::lines;

/// What a stream is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The values themselves.
    Values,
    /// The elements of the member `messages` of each value.
    Messages,
}

/// An object as it stands in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a> {
    /// Its bytes; none where it is too long to be held.
    pub(super) bytes: Option<&'a [u8]>,
    /// Offset of its first byte.
    pub(super) start: u64,
    /// Offset behind its last byte.
    pub(super) end: u64,
}

/// What was found, in the order of the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'a> {
    /// An object.
    Item(Raw<'a>),
    /// A value whose messages were handed out before ([`Cut::Messages`] only): what else is in it, and where it ends.
    Record(&'a [u8], u64),
    /// A value of which this offset, its first, is known, and which is broken.
    Bad(u64),
    /// The file ends inside the value that begins here.
    Torn(u64),
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Stop,
}

const CHUNK: usize = 64 << 10;
/// A record of an event log without its messages is small.
const LONGEST_RECORD: usize = 1 << 20;

/// Streams a file, from an offset on, to `take`. A broken value ends at its line.
///
/// # Errors
/// The file cannot be read.
pub(super) fn stream(
    path: &Path,
    start: u64,
    cut: Cut,
    take: &mut dyn FnMut(Piece<'_>) -> Flow,
) -> io::Result<()> {
    let mut input = lines::open(path, start)?;
    let mut state = State::new(cut, start);
    let mut chunk = vec![0; CHUNK];
    loop {
        let got = match input.read(&mut chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if got == 0 {
            break;
        }
        if state.feed(chunk.get(..got).unwrap_or_default(), take) == Flow::Stop {
            return Ok(());
        }
    }
    if state.depth > 0 {
        take(Piece::Torn(state.value_at));
    }
    Ok(())
}

/// What the next byte belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Brackets, numbers and what is between them.
    Structure,
    String,
    /// A string, behind a backslash.
    Escape,
    /// The line of a broken value.
    BrokenLine,
}

struct State {
    cut: Cut,
    /// Offset of the next byte.
    at: u64,
    depth: u64,
    within: Within,
    /// The array that is open at depth 2 is that of the messages.
    messages: bool,
    item: Item,
    /// Offset of the value that is open.
    value_at: u64,
    rest: Vec<u8>,
}

/// Streams bytes that are at hand: the head of a file.
pub(super) fn stream_bytes(bytes: &[u8], cut: Cut, take: &mut dyn FnMut(Piece<'_>) -> Flow) {
    let mut state = State::new(cut, 0);
    if state.feed(bytes, take) == Flow::On && state.depth > 0 {
        take(Piece::Torn(state.value_at));
    }
}

#[derive(Default)]
struct Item {
    open: bool,
    at: u64,
    bytes: Vec<u8>,
    huge: bool,
}

impl Item {
    fn push(&mut self, bytes: &[u8]) {
        if self.huge || self.bytes.len() + bytes.len() > lines::LONGEST {
            self.huge = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

impl State {
    fn new(cut: Cut, at: u64) -> Self {
        Self {
            cut,
            at,
            depth: 0,
            within: Within::Structure,
            messages: false,
            item: Item::default(),
            value_at: at,
            rest: Vec::new(),
        }
    }

    /// Depth at which an item opens.
    fn items_at(&self) -> u64 {
        match self.cut {
            Cut::Values => 0,
            Cut::Messages => 2,
        }
    }

    fn feed(&mut self, chunk: &[u8], take: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        let mut rest = chunk;
        while !rest.is_empty() {
            let (flow, used) = match self.within {
                Within::BrokenLine => (Flow::On, self.skip_line(rest)),
                Within::String | Within::Escape => self.in_string(rest, take),
                Within::Structure => self.outside(rest, take),
            };
            self.at += used as u64;
            if flow == Flow::Stop {
                return Flow::Stop;
            }
            rest = rest.get(used..).unwrap_or_default();
        }
        Flow::On
    }

    fn skip_line(&mut self, rest: &[u8]) -> usize {
        let newline = memchr::memchr(b'\n', rest);
        if newline.is_some() {
            self.within = Within::Structure;
        }
        newline.map_or(rest.len(), |n| n + 1)
    }

    /// Keeps bytes of the value that is open.
    fn keep(&mut self, bytes: &[u8]) {
        if self.item.open {
            self.item.push(bytes);
        } else if self.cut == Cut::Messages && self.rest.len() <= LONGEST_RECORD {
            self.rest.extend_from_slice(bytes);
        }
    }

    /// Bytes inside a string, up to its end. A raw newline cannot be in one: the value was torn there.
    fn in_string(&mut self, rest: &[u8], take: &mut dyn FnMut(Piece<'_>) -> Flow) -> (Flow, usize) {
        // All that is of the string is kept at once: texts of code have an escape every few bytes.
        let mut used = usize::from(self.within == Within::Escape);
        self.within = Within::String;
        loop {
            let Some(hit) = rest
                .get(used..)
                .and_then(|r| memchr::memchr3(b'"', b'\\', b'\n', r))
            else {
                if used > rest.len() {
                    self.within = Within::Escape;
                }
                self.keep(rest);
                return (Flow::On, rest.len());
            };
            used += hit;
            match rest.get(used) {
                Some(b'\\') => used += 2,
                Some(b'"') => break,
                _ => return (self.broken(take), used),
            }
        }
        self.within = Within::Structure;
        self.keep(rest.get(..=used).unwrap_or_default());
        (Flow::On, used + 1)
    }

    fn broken(&mut self, take: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        let at = if self.depth == 0 {
            self.at
        } else {
            self.value_at
        };
        *self = Self {
            within: Within::BrokenLine,
            ..Self::new(self.cut, self.at)
        };
        take(Piece::Bad(at))
    }

    /// Bytes outside of strings, up to one that opens or closes something.
    fn outside(&mut self, rest: &[u8], take: &mut dyn FnMut(Piece<'_>) -> Flow) -> (Flow, usize) {
        let plain = rest
            .iter()
            .take_while(|b| !matches!(b, b'"' | b'{' | b'}' | b'[' | b']'))
            .count();
        let lead = rest.get(..plain).unwrap_or_default();
        if self.depth == 0 && !lead.iter().all(|b| super::super::head::lead_byte(*b)) {
            return (self.broken(take), plain.min(1));
        }
        if self.depth > 0 {
            self.keep(lead);
        }
        let Some(byte) = rest.get(plain) else {
            return (Flow::On, plain);
        };
        let at = self.at + plain as u64;
        let flow = match byte {
            b'{' | b'[' => self.open(*byte, at, take),
            b'}' | b']' => self.close(*byte, at, take),
            _ if self.depth == 0 => self.broken(take),
            _ => {
                self.within = Within::String;
                self.keep(b"\"");
                Flow::On
            }
        };
        (flow, plain + 1)
    }

    fn open(&mut self, byte: u8, at: u64, take: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        if self.depth == 0 {
            if byte != b'{' {
                return self.broken(take);
            }
            self.value_at = at;
            self.rest.clear();
        }
        if self.depth == 1 && !self.item.open {
            self.messages = byte == b'[' && names_messages(&self.rest);
        }
        let here = self.cut == Cut::Values || self.messages;
        if !self.item.open && byte == b'{' && self.depth == self.items_at() && here {
            self.item = Item {
                open: true,
                at,
                ..Item::default()
            };
        }
        self.keep(&[byte]);
        self.depth += 1;
        Flow::On
    }

    fn close(&mut self, byte: u8, at: u64, take: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        if self.depth == 0 {
            return self.broken(take);
        }
        self.keep(&[byte]);
        self.depth -= 1;
        if self.item.open && self.depth == self.items_at() {
            let item = std::mem::take(&mut self.item);
            self.keep(b"0");
            let bytes = (!item.huge).then_some(item.bytes.as_slice());
            return take(Piece::Item(Raw {
                bytes,
                start: item.at,
                end: at + 1,
            }));
        }
        if self.depth == 0 && self.cut == Cut::Messages {
            if self.rest.len() > LONGEST_RECORD {
                return take(Piece::Bad(self.value_at));
            }
            return take(Piece::Record(&self.rest, at + 1));
        }
        Flow::On
    }
}

/// Whether the key that stands before the value that opens now is `messages`.
fn names_messages(before: &[u8]) -> bool {
    let key = before.trim_ascii_end().strip_suffix(b":");
    key.is_some_and(|k| k.trim_ascii_end().ends_with(b"\"messages\""))
}
