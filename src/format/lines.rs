//! A streaming reader of JSONL: one pass, 64 KB at a time, that leaves most lines after their head. Splits at 0x0A
//! only; every oddity is counted with its byte offset and never stops the reading (`bugs.md` 81, 82, 84, 87).
//! Memory is one buffer, grown only for a line that is wanted whole, up to [`LONGEST`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::json;
use crate::model::session::{FileNo, Oddity, Span, Warnings};

/// The longest line in bytes that is read whole. A longer one is skipped and counted: no prompt is that long, and
/// tool results of any size are left at their head.
pub const LONGEST: usize = 24 << 20;

const CHUNK: usize = 64 << 10;

/// What a reader thinks of a record after seeing its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing in it matters.
    No,
    /// It is wanted whole.
    Whole,
}

/// One kind of reading: looks at heads, takes the records that matter.
pub trait Visit {
    /// How the records of this format begin, for finding a whole record behind a torn one on the same line. May be
    /// empty.
    fn starts(&self) -> &'static [&'static [u8]];

    /// Decides from the head of a record.
    ///
    /// # Errors
    /// [`json::Stop`] as it came from the scanner: more bytes are needed, or it is no JSON.
    fn wants(&mut self, head: &[u8]) -> json::Scan<Wants>;

    /// Takes a whole record that begins at `at` in the file.
    fn take(&mut self, record: &[u8], at: u64);

    /// Told of the line, from `start` to behind its newline, after its records were taken or left.
    fn line_done(&mut self, _start: u64, _end: u64) {}
}

/// Opens a session file for streaming; `.zst` is decoded.
///
/// # Errors
/// The file cannot be opened.
pub fn open(path: &Path, start: u64) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    if path.extension().is_some_and(|e| e == "zst") {
        let mut decoded = zstd::stream::read::Decoder::new(file)?;
        io::copy(&mut decoded.by_ref().take(start), &mut io::sink())?;
        return Ok(Box::new(decoded));
    }
    file.seek(SeekFrom::Start(start))?;
    Ok(Box::new(file))
}

/// Reads the bytes of a span.
///
/// # Errors
/// The file cannot be read, is shorter than the span, or the span is longer than [`LONGEST`].
pub fn read_span(path: &Path, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let len = end.saturating_sub(start);
    if len > LONGEST as u64 {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "record too long",
        ));
    }
    let mut out = Vec::new();
    open(path, start)?.take(len).read_to_end(&mut out)?;
    if out.len() as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(out)
}

/// Reads a file whole.
///
/// # Errors
/// The file cannot be read, or is longer than `most` bytes.
pub fn read_whole(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    open(path, 0)?.take(most as u64 + 1).read_to_end(&mut out)?;
    if out.len() > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "file too long"));
    }
    Ok(out)
}

/// Streams `start..end` of a file through a visitor; returns the offset behind the last byte read.
///
/// # Errors
/// The file cannot be read.
pub fn scan(
    path: &Path,
    span: Span,
    visit: &mut dyn Visit,
    warnings: &mut Warnings,
) -> io::Result<u64> {
    let input = open(path, span.start)?.take(span.len());
    let mut lines = Lines {
        input,
        buf: Vec::new(),
        from: 0,
        at: span.start,
        eof: false,
        file: span.file,
        warnings,
    };
    while lines.line(visit)? {}
    Ok(lines.at)
}

/// The whole of a file, as a span to scan.
#[must_use]
pub fn whole(file: FileNo) -> Span {
    Span {
        file,
        start: 0,
        end: u64::MAX,
    }
}

struct Lines<'w, R> {
    input: R,
    buf: Vec<u8>,
    /// Where the unread bytes begin in `buf`.
    from: usize,
    /// File offset of `buf[from]`.
    at: u64,
    eof: bool,
    file: FileNo,
    warnings: &'w mut Warnings,
}

impl<R: Read> Lines<'_, R> {
    fn pending(&self) -> &[u8] {
        self.buf.get(self.from..).unwrap_or_default()
    }

    /// Reads one more chunk behind the unread bytes.
    fn fill(&mut self) -> io::Result<()> {
        self.buf.drain(..self.from);
        self.from = 0;
        let old = self.buf.len();
        self.buf.resize(old + CHUNK, 0);
        let space = self.buf.get_mut(old..).unwrap_or_default();
        let got = loop {
            match self.input.read(space) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.buf.truncate(old + got);
        self.eof = got == 0;
        Ok(())
    }

    fn consume(&mut self, n: usize) {
        self.from += n;
        self.at += n as u64;
        if self.buf.capacity() > 4 * CHUNK && self.pending().len() < CHUNK {
            self.buf.drain(..self.from);
            self.from = 0;
            self.buf.shrink_to(CHUNK);
        }
    }

    fn warn(&mut self, oddity: Oddity, at: u64) {
        self.warnings.add(oddity, self.file, at);
    }

    /// Reads one line; `false` behind the last.
    fn line(&mut self, visit: &mut dyn Visit) -> io::Result<bool> {
        if self.pending().is_empty() {
            self.fill()?;
            if self.pending().is_empty() {
                return Ok(false);
            }
        }
        let start = self.at;
        self.lead(start)?;
        // The last line may have no end; that it is the last shows only when nothing more comes.
        while memchr::memchr(b'\n', self.pending()).is_none()
            && !self.eof
            && self.pending().len() < CHUNK
        {
            self.fill()?;
        }
        if memchr::memchr(b'\n', self.pending()).is_none() && !self.eof {
            self.long_line(visit)?;
        } else {
            self.short_line(visit);
        }
        visit.line_done(start, self.at);
        Ok(true)
    }

    /// Leaves a byte order mark and a run of NUL bytes before the record (`bugs.md` 82).
    fn lead(&mut self, start: u64) -> io::Result<()> {
        if start == 0 && self.pending().starts_with(b"\xEF\xBB\xBF") {
            self.warn(Oddity::ByteOrderMark, 0);
            self.consume(3);
        }
        if self.pending().first() != Some(&0) {
            return Ok(());
        }
        self.warn(Oddity::NulHole, self.at);
        loop {
            let n = self.pending().iter().take_while(|b| **b == 0).count();
            let all = n == self.pending().len();
            self.consume(n);
            if !all || self.eof {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// A line whose end is in the buffer, or the last one of the file.
    fn short_line(&mut self, visit: &mut dyn Visit) {
        let end = memchr::memchr(b'\n', self.pending());
        let len = end.unwrap_or(self.pending().len());
        let at = self.at;
        let from = self.from;
        // The buffer is lent out while records are taken; nothing is read meanwhile.
        let buf = std::mem::take(&mut self.buf);
        let line = buf.get(from..from + len).unwrap_or_default();
        self.records(line, at, end.is_none(), visit);
        self.buf = buf;
        self.consume(len + usize::from(end.is_some()));
    }

    /// A line that goes on behind the buffer: its head decides whether the rest is kept or only passed over.
    fn long_line(&mut self, visit: &mut dyn Visit) -> io::Result<()> {
        let head = self.pending();
        let lead = head.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let wants = visit.wants(head.get(lead..).unwrap_or_default());
        if wants == Ok(Wants::No) {
            return self.pass_over();
        }
        while memchr::memchr(b'\n', self.pending()).is_none() && !self.eof {
            if self.pending().len() > LONGEST {
                self.warn(Oddity::HugeLine, self.at);
                return self.pass_over();
            }
            self.grow()?;
        }
        self.short_line(visit);
        Ok(())
    }

    /// Doubles what is held of the line, so that finding its end stays linear.
    fn grow(&mut self) -> io::Result<()> {
        let target = (self.pending().len() * 2).min(LONGEST + CHUNK);
        while self.pending().len() < target && !self.eof {
            self.fill()?;
        }
        Ok(())
    }

    fn pass_over(&mut self) -> io::Result<()> {
        loop {
            if let Some(n) = memchr::memchr(b'\n', self.pending()) {
                self.consume(n + 1);
                return Ok(());
            }
            let n = self.pending().len();
            self.consume(n);
            if self.eof {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Hands the records of one line to the visitor: normally one, sometimes several glued together, sometimes a
    /// torn one with a whole one behind it (`bugs.md` 81).
    fn records(&mut self, line: &[u8], at: u64, last: bool, visit: &mut dyn Visit) {
        let mut pos = gap(line, 0);
        if pos == line.len() {
            return;
        }
        let first = pos;
        let wants = visit.wants(line.get(pos..).unwrap_or_default());
        if wants == Ok(Wants::No) && !seam(line, pos, visit.starts()) {
            // Left at its head, so its end was not looked for; only the last line can have none.
            if last && whole_object(line.get(pos..).unwrap_or_default()) == Err(json::Stop::More) {
                self.warn(Oddity::TornTail, at + pos as u64);
            }
            return;
        }
        let mut count = 0u32;
        while pos < line.len() {
            let rest = line.get(pos..).unwrap_or_default();
            match whole_object(rest) {
                Ok(len) => {
                    let record = rest.get(..len).unwrap_or_default();
                    count += 1;
                    if count == 2 {
                        self.warn(Oddity::GluedRecords, at + pos as u64);
                    }
                    // The line's head was asked for already; what stands behind a torn record was not.
                    let wanted = if pos == first && wants.is_ok() {
                        wants
                    } else {
                        visit.wants(record)
                    };
                    if wanted == Ok(Wants::Whole) {
                        visit.take(record, at + pos as u64);
                    }
                    pos = gap(line, pos + len);
                }
                Err(stop) => {
                    let next = later_object(line, pos);
                    if next.is_none() && last && stop == json::Stop::More {
                        self.warn(Oddity::TornTail, at + pos as u64);
                    } else {
                        self.warn(Oddity::BadLine, at + pos as u64);
                    }
                    match next {
                        Some(n) => pos = n,
                        None => return,
                    }
                }
            }
        }
    }
}

/// Passes over white space and NUL bytes between records.
fn gap(line: &[u8], mut pos: usize) -> usize {
    while line
        .get(pos)
        .is_some_and(|b| *b == 0 || b.is_ascii_whitespace())
    {
        pos += 1;
    }
    pos
}

fn whole_object(bytes: &[u8]) -> json::Scan<usize> {
    if bytes.first() != Some(&b'{') {
        return Err(json::Stop::Bad(0));
    }
    // Walking the members finds a torn string that a later record runs into; only counting brackets would not.
    let mut fields = json::Fields::open(bytes, 0)?;
    while fields.pull()?.is_some() {}
    Ok(fields.end())
}

/// Whether a line that was left at its head may hold another record behind the first one.
fn seam(line: &[u8], pos: usize, starts: &[&[u8]]) -> bool {
    let body = line.get(pos + 1..).unwrap_or_default();
    memchr::memmem::find(body, b"}{\"").is_some()
        || starts
            .iter()
            .any(|s| memchr::memmem::find(body, s).is_some())
}

/// Finds a whole object that ends the line, behind a torn one. Bounded: a line of a million braces is not tried a
/// million times.
fn later_object(line: &[u8], pos: usize) -> Option<usize> {
    let mut from = pos + 1;
    for _ in 0..64 {
        let hit = from + memchr::memmem::find(line.get(from..)?, b"{\"")?;
        let rest = line.get(hit..)?;
        if let Ok(len) = whole_object(rest)
            && gap(rest, len) == rest.len()
        {
            return Some(hit);
        }
        from = hit + 1;
    }
    None
}
