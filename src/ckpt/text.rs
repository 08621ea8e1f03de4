//! Inline contents: text in a record that stands for the bytes of a file in some encoding.
//!
//! ```text
//! {"path":"a.txt","content":"h\u00e9\n","encoding":2}     UTF-16LE with its byte order mark
//! ```
//!
//! What can be encoded again is encoded again; with a hash in the record the result must have it; what cannot be (GB18030
//! beyond ASCII, text that was lossy when it was saved) is unknown, never a file in the wrong encoding (`bugs.md` 48-51).

use std::path::Path;

use super::blobs::sha256;
use crate::format::{json, lines};
use crate::model::edit::{Content, Fidelity, Payload, Reason, State};

/// A content up to this many bytes is held; a longer one is named by its place.
const HELD: usize = 4096;

/// The encoding that a record names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// It names none: the oldest generation, or a recorder that stores bytes as they are.
    Unsaid,
    /// Valid UTF-8.
    Utf8,
    /// UTF-8 behind a byte order mark.
    Utf8Bom,
    /// UTF-16 of this byte order, with or without its mark.
    Utf16(Order, Mark),
    /// GB18030.
    Gb18030,
    /// The text was lossy when it was saved, or the number is not known here.
    Lossy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    With,
    Without,
}

impl Encoding {
    /// The encoding of that number in a record.
    pub(super) fn of(number: i64) -> Self {
        match number {
            0 => Self::Utf8,
            1 => Self::Utf8Bom,
            2 => Self::Utf16(Order::Little, Mark::With),
            3 => Self::Utf16(Order::Big, Mark::With),
            4 => Self::Gb18030,
            6 => Self::Utf16(Order::Little, Mark::Without),
            7 => Self::Utf16(Order::Big, Mark::Without),
            _ => Self::Lossy,
        }
    }

    /// The bytes that a text stands for; `None` where they cannot be made for certain.
    fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Unsaid | Self::Utf8 => Some(text.as_bytes().to_vec()),
            Self::Utf8Bom => Some([b"\xEF\xBB\xBF", text.as_bytes()].concat()),
            Self::Utf16(order, mark) => Some(utf16(text, order, mark)),
            Self::Gb18030 => text.is_ascii().then(|| text.as_bytes().to_vec()),
            Self::Lossy => None,
        }
    }
}

fn utf16(text: &str, order: Order, mark: Mark) -> Vec<u8> {
    let lead = (mark == Mark::With).then_some(0xFEFF);
    lead.into_iter()
        .chain(text.encode_utf16())
        .flat_map(|unit| match order {
            Order::Little => unit.to_le_bytes(),
            Order::Big => unit.to_be_bytes(),
        })
        .collect()
}

/// A string token of a record, and what the record says of it.
pub(super) struct Inline<'a> {
    /// The token, quotes included.
    pub(super) token: &'a [u8],
    /// The record's file.
    pub(super) file: &'a Path,
    /// Offset of the token in that file.
    pub(super) at: u64,
    /// The encoding that the record names.
    pub(super) encoding: Encoding,
    /// The hash that the file's bytes must have.
    pub(super) sha256: Option<[u8; 32]>,
}

impl Inline<'_> {
    /// The state that the text stands for.
    pub(super) fn state(&self) -> State {
        // A byte that is no UTF-8 cannot come from the recorder: the record was damaged.
        if std::str::from_utf8(self.token).is_err() {
            return State::Unknown(Reason::RecordDamaged);
        }
        let plain = matches!(self.encoding, Encoding::Unsaid | Encoding::Utf8);
        if plain && (HELD..=lines::LONGEST).contains(&self.token.len()) && !self.replaced() {
            return self.named();
        }
        let Some(bytes) = json::string(self.token, json::Broken::Refuse) else {
            return State::Unknown(Reason::RecordDamaged);
        };
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return State::Unknown(Reason::RecordDamaged);
        };
        match self.sha256 {
            Some(sha256) => self.checked(text, sha256),
            None => self.unchecked(text),
        }
    }

    /// Whether the text may hold U+FFFD. A false alarm only costs decoding the text.
    fn replaced(&self) -> bool {
        [&b"\xEF\xBF\xBD"[..], br"\ufffd", br"\uFFFD", br"\uFffd"]
            .iter()
            .any(|s| memchr::memmem::find(self.token, s).is_some())
    }

    /// A long plain text stays where it is; its hash is checked when it is used.
    fn named(&self) -> State {
        let end = self.at + self.token.len() as u64;
        let exact = self.encoding == Encoding::Utf8 || self.sha256.is_some();
        State::Held(Content {
            payload: Payload::TokenIn(self.file.to_path_buf(), self.at, end),
            fidelity: if exact {
                Fidelity::Exact
            } else {
                Fidelity::Text
            },
            sha256: self.sha256,
        })
    }

    /// With a hash, whatever encoding gives the very bytes is the right one.
    fn checked(&self, text: &str, sha256_named: [u8; 32]) -> State {
        let others = [
            Encoding::Utf8,
            Encoding::Utf8Bom,
            Encoding::Utf16(Order::Little, Mark::With),
            Encoding::Utf16(Order::Big, Mark::With),
            Encoding::Utf16(Order::Little, Mark::Without),
            Encoding::Utf16(Order::Big, Mark::Without),
        ];
        let found = std::iter::once(self.encoding)
            .chain(others)
            .filter_map(|e| e.encode(text))
            .find(|b| sha256(b) == sha256_named);
        match found {
            Some(bytes) => held(bytes, Fidelity::Exact, self.sha256),
            None if self.encoding == Encoding::Gb18030 => State::Unknown(Reason::TextOnly),
            None => State::Unknown(Reason::CopyDamaged),
        }
    }

    fn unchecked(&self, text: &str) -> State {
        let marked = text.starts_with('\u{FEFF}');
        let lossy = text.contains(char::REPLACEMENT_CHARACTER);
        let unsure = match self.encoding {
            Encoding::Utf8 | Encoding::Gb18030 => false,
            Encoding::Unsaid | Encoding::Utf16(_, Mark::Without) => lossy,
            // Whether the mark in the text is the file's own or a second one is not known.
            Encoding::Utf8Bom => marked,
            Encoding::Utf16(_, Mark::With) => marked || lossy,
            Encoding::Lossy => true,
        };
        let fidelity = match self.encoding {
            Encoding::Unsaid => Fidelity::Text,
            _ => Fidelity::Exact,
        };
        match self.encoding.encode(text) {
            Some(bytes) if !unsure => held(bytes, fidelity, None),
            _ => State::Unknown(Reason::TextOnly),
        }
    }
}

fn held(bytes: Vec<u8>, fidelity: Fidelity, sha256: Option<[u8; 32]>) -> State {
    State::Held(Content {
        payload: Payload::Bytes(bytes),
        fidelity,
        sha256,
    })
}
