//! The head of a session file: as much as tells what it is, read once and asked by every format.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::{json, lines};

/// The head of a file: its first records, for telling what it is.
#[derive(Debug, Clone)]
pub struct Head {
    /// The file.
    pub path: PathBuf,
    bytes: Vec<u8>,
    /// Offsets of the records, and their members; the last one may be cut by the end of the head.
    records: Vec<(usize, usize, json::Members)>,
}

/// A head is never longer than this, in bytes.
const HEAD: u64 = 256 << 10;
/// So much is read first: for most files it tells all that a head can.
const SHORT: u64 = 16 << 10;
/// A head never holds more records than this.
const HEAD_RECORDS: usize = 40;

impl Head {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        Self::first(path, HEAD)
    }

    /// Reads less than the head of a file; what it tells has to be checked for being all.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn short(path: &Path) -> std::io::Result<Self> {
        Self::first(path, SHORT)
    }

    fn first(path: &Path, most: u64) -> std::io::Result<Self> {
        let mut bytes = Vec::new();
        lines::open(path, 0)?.take(most).read_to_end(&mut bytes)?;
        Ok(Self::of(path, bytes))
    }

    /// The head of a file whose first bytes are at hand.
    #[must_use]
    pub fn of(path: &Path, bytes: Vec<u8>) -> Self {
        let mut records = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..end).unwrap_or_default();
            let lead = line.iter().take_while(|b| **b != b'{').take(4096).count();
            let odd = line.get(..lead).unwrap_or_default();
            if line.get(lead) == Some(&b'{') && odd.iter().all(|b| lead_byte(*b)) {
                let members = json::Members::of(line.get(lead..).unwrap_or_default());
                records.push((at + lead, at + line.len(), members));
            }
            at += line.len() + 1;
            if records.len() == HEAD_RECORDS {
                break;
            }
        }
        Self {
            path: path.to_path_buf(),
            bytes,
            records,
        }
    }

    /// The records, as values whose members can be asked for; the last one may be cut short.
    pub fn records(&self) -> impl Iterator<Item = json::Value<'_>> {
        self.records.iter().filter_map(|(s, e, members)| {
            Some(json::Value::known(self.bytes.get(*s..*e)?, members))
        })
    }

    /// The first bytes of the file, for saying what was seen in it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What may stand before the first record of a line: white space, NUL, a byte order mark.
pub(super) fn lead_byte(b: u8) -> bool {
    b == 0 || b.is_ascii_whitespace() || matches!(b, 0xEF | 0xBB | 0xBF)
}
