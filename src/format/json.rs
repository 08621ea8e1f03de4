//! A pull scanner over the bytes of one JSON record: it leaves a value as soon as the caller has seen enough, never
//! recurses, never copies, and survives what real files hold (escaped keys, lone surrogates, bytes that are no UTF-8,
//! duplicate keys, any depth). Of duplicate keys the first one counts. It is no validator: what it skips it does not
//! judge.

mod pointer;
mod string;

use std::borrow::Cow;

pub use string::{Broken, string};
use string::{lossy, unescape};

/// Why a scan ended before its value did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The bytes end inside the value; with more of them it may go on.
    More,
    /// This offset cannot belong to a JSON value.
    Bad(usize),
}

/// The result of a scan step.
pub type Scan<T> = Result<T, Stop>;

/// Returns the offset of the first byte at or after `at` that is no white space.
fn blank(buf: &[u8], mut at: usize) -> usize {
    while matches!(buf.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Returns the offset behind the string token that begins at `at` with its quote.
fn skip_string(buf: &[u8], at: usize) -> Scan<usize> {
    let mut at = at + 1;
    loop {
        let rest = buf.get(at..).ok_or(Stop::More)?;
        let hit = memchr::memchr2(b'"', b'\\', rest).ok_or(Stop::More)?;
        at += hit;
        if buf.get(at) == Some(&b'"') {
            return Ok(at + 1);
        }
        at += 2;
    }
}

/// Returns the offset behind the value that begins at or after `at`.
///
/// # Errors
/// [`Stop::More`] where the bytes end first, [`Stop::Bad`] where no value begins.
pub fn skip(buf: &[u8], at: usize) -> Scan<usize> {
    let at = blank(buf, at);
    match buf.get(at).ok_or(Stop::More)? {
        b'"' => skip_string(buf, at),
        b'{' | b'[' => skip_container(buf, at),
        b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => skip_scalar(buf, at),
        _ => Err(Stop::Bad(at)),
    }
}

/// Counts brackets instead of recursing: a record may nest 100,000 deep.
fn skip_container(buf: &[u8], mut at: usize) -> Scan<usize> {
    let mut depth = 0u64;
    loop {
        match buf.get(at).ok_or(Stop::More)? {
            b'"' => {
                at = skip_string(buf, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            // A byte that stands between tokens of JSON, or is part of a number or a literal.
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' | b'+' | b'-' | b'.' => {}
            c if c.is_ascii_alphanumeric() => {}
            _ => return Err(Stop::Bad(at)),
        }
        at += 1;
    }
}

/// Numbers and literals end at the first byte that cannot be theirs. At the end of the bytes they may go on.
fn skip_scalar(buf: &[u8], at: usize) -> Scan<usize> {
    let mut end = at;
    while let Some(c) = buf.get(end) {
        if c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.') {
            end += 1;
        } else {
            return Ok(end);
        }
    }
    Err(Stop::More)
}

/// One member of an object: its key and where its value begins.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    key: &'a [u8],
    key_at: usize,
    buf: &'a [u8],
    /// Offset of the value's first byte.
    pub at: usize,
}

/// Whether a key as it stands in the file is this name.
fn same(key: &[u8], name: &str) -> bool {
    if key.contains(&b'\\') {
        return unescape(key, Broken::Replace).is_some_and(|k| *k == *name.as_bytes());
    }
    key == name.as_bytes()
}

impl<'a> Field<'a> {
    /// Whether this is the key; an escaped key is unescaped first.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        same(self.key, name)
    }

    /// The key as text.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        lossy(unescape(self.key, Broken::Replace).unwrap_or(Cow::Borrowed(self.key)))
    }

    /// The whole value.
    ///
    /// # Errors
    /// As [`skip`].
    pub fn value(&self) -> Scan<Value<'a>> {
        Value::scan(self.buf, self.at)
    }

    /// Whether the value is this very string; does not look past its end.
    ///
    /// # Errors
    /// As [`skip`].
    pub fn equals(&self, text: &str) -> Scan<bool> {
        if self.first()? != b'"' {
            return Ok(false);
        }
        Ok(self.value()?.is_str(text))
    }

    /// The first byte of the value, which tells its type.
    ///
    /// # Errors
    /// [`Stop::More`] where there is none yet.
    pub fn first(&self) -> Scan<u8> {
        self.buf.get(self.at).copied().ok_or(Stop::More)
    }

    /// The members of the value's first element, when it is an array of objects.
    ///
    /// # Errors
    /// [`Stop::More`] where the bytes end first, [`Stop::Bad`] where there is none.
    pub fn first_item(&self) -> Scan<Fields<'a>> {
        match self.first()? {
            b'[' => Fields::open(self.buf, self.at + 1),
            _ => Err(Stop::Bad(self.at)),
        }
    }

    /// The members of the value, when it is an object.
    ///
    /// # Errors
    /// [`Stop::More`] where the bytes end first, [`Stop::Bad`] where it is no object.
    pub fn fields(&self) -> Scan<Fields<'a>> {
        Fields::open(self.buf, self.at)
    }
}

/// The members of an object, one at a time, in the order of the file.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    buf: &'a [u8],
    /// Where the last member's value begins; it is skipped when the next one is asked for.
    value: Option<usize>,
    at: usize,
    done: bool,
}

impl<'a> Fields<'a> {
    /// Opens the object that begins at or after `at`.
    ///
    /// # Errors
    /// [`Stop::More`] at the end of the bytes, [`Stop::Bad`] where no object begins.
    pub fn open(buf: &'a [u8], at: usize) -> Scan<Self> {
        let at = blank(buf, at);
        match buf.get(at) {
            Some(b'{') => Ok(Self {
                buf,
                value: None,
                at: at + 1,
                done: false,
            }),
            Some(_) => Err(Stop::Bad(at)),
            None => Err(Stop::More),
        }
    }

    /// Offset behind the object, once the last member was pulled.
    #[must_use]
    pub fn end(&self) -> usize {
        self.at
    }

    /// The next member, or `None` behind the last one.
    ///
    /// # Errors
    /// As [`skip`].
    pub fn pull(&mut self) -> Scan<Option<Field<'a>>> {
        if self.done {
            return Ok(None);
        }
        let first = self.value.is_none() && self.at > 0 && self.buf.get(self.at - 1) == Some(&b'{');
        if let Some(value) = self.value.take() {
            self.at = skip(self.buf, value)?;
        }
        let mut at = blank(self.buf, self.at);
        match self.buf.get(at).ok_or(Stop::More)? {
            b'}' => {
                self.done = true;
                self.at = at + 1;
                return Ok(None);
            }
            b',' if !first => at = blank(self.buf, at + 1),
            _ if first => {}
            _ => return Err(Stop::Bad(at)),
        }
        if *self.buf.get(at).ok_or(Stop::More)? != b'"' {
            return Err(Stop::Bad(at));
        }
        let end = skip_string(self.buf, at)?;
        let key = self.buf.get(at + 1..end - 1).unwrap_or_default();
        let colon = blank(self.buf, end);
        if *self.buf.get(colon).ok_or(Stop::More)? != b':' {
            return Err(Stop::Bad(colon));
        }
        let value = blank(self.buf, colon + 1);
        self.value = Some(value);
        Ok(Some(Field {
            key,
            key_at: at + 1,
            buf: self.buf,
            at: value,
        }))
    }
}

/// A whole value inside a record; `start..end` are offsets in the record.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    buf: &'a [u8],
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
    /// Its members, where they were looked for before.
    members: Option<&'a Members>,
}

/// Where the members of a record lie, looked for once when many will ask. Each as far as it is there: key and value.
#[derive(Debug, Clone, Default)]
pub struct Members(Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>);

impl Members {
    /// Looks for the members of a record that may be cut short.
    #[must_use]
    pub fn of(record: &[u8]) -> Self {
        let mut all = Vec::new();
        let mut fields = Fields::open(record, 0).ok();
        while let Some(Ok(Some(field))) = fields.as_mut().map(Fields::pull) {
            let Ok(value) = field.value() else { break };
            let key = field.key_at..field.key_at + field.key.len();
            all.push((key, value.start..value.end));
        }
        Self(all)
    }
}

impl<'a> Value<'a> {
    /// Delimits the value that begins at or after `at`.
    ///
    /// # Errors
    /// As [`skip`].
    pub fn scan(buf: &'a [u8], at: usize) -> Scan<Self> {
        let start = blank(buf, at);
        // A scalar at the very end of the bytes is whole only as a record of its own, which it never is.
        let end = skip(buf, start)?;
        Ok(Self {
            buf,
            start,
            end,
            members: None,
        })
    }

    /// The record as a whole.
    #[must_use]
    pub fn of(record: &'a [u8]) -> Option<Self> {
        Self::scan(record, 0).ok()
    }

    /// The head of a record that may be cut short: its members can be asked for as far as they are there.
    #[must_use]
    pub fn head(bytes: &'a [u8]) -> Self {
        Self {
            buf: bytes,
            start: 0,
            end: bytes.len(),
            members: None,
        }
    }

    /// The same with its members at hand.
    #[must_use]
    pub fn known(bytes: &'a [u8], members: &'a Members) -> Self {
        Self {
            members: Some(members),
            ..Self::head(bytes)
        }
    }

    /// The token as it stands in the file.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// The first byte, which tells the type.
    #[must_use]
    pub fn first(&self) -> u8 {
        self.raw().first().copied().unwrap_or(0)
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.raw() == b"null"
    }

    /// Whether it is `true`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.raw() == b"true"
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.first() == b'{'
    }

    /// Whether it is an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.first() == b'['
    }

    /// Whether it is a string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.first() == b'"'
    }

    /// Whether it is this string.
    #[must_use]
    pub fn is_str(&self, text: &str) -> bool {
        self.bytes().is_some_and(|b| *b == *text.as_bytes())
    }

    /// The member of that name, unless it is `null`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.member(name).filter(|v| !v.is_null())
    }

    /// The member of that name, `null` included: for the places where null has a meaning of its own.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Value<'a>> {
        if let Some(Members(all)) = self.members {
            let buf = self.buf;
            let is = |key: &std::ops::Range<usize>| {
                buf.get(key.clone()).is_some_and(|key| same(key, name))
            };
            let (_, at) = all.iter().find(|(key, _)| is(key))?;
            return Some(Self {
                buf,
                start: at.start,
                end: at.end,
                members: None,
            });
        }
        let mut fields = Fields::open(self.buf, self.start).ok()?;
        while let Ok(Some(field)) = fields.pull() {
            if field.is(name) {
                return field.value().ok();
            }
        }
        None
    }

    /// The members of an object, `null` ones included; nothing for another type.
    pub fn entries(&self) -> impl Iterator<Item = (Cow<'a, str>, Value<'a>)> + use<'a> {
        let mut fields = Fields::open(self.buf, self.start).ok();
        std::iter::from_fn(move || {
            let field = fields.as_mut()?.pull().ok()??;
            Some((field.name(), field.value().ok()?))
        })
    }

    /// The elements of an array; nothing for another type.
    pub fn items(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let buf = self.buf;
        let end = self.end;
        let mut at = if self.is_array() { self.start + 1 } else { end };
        std::iter::from_fn(move || {
            at = blank(buf, at);
            if buf.get(at) == Some(&b',') {
                at = blank(buf, at + 1);
            }
            if at + 1 >= end || buf.get(at) == Some(&b']') {
                return None;
            }
            let value = Value::scan(buf, at).ok()?;
            at = value.end;
            Some(value)
        })
    }

    /// The bytes of a string, unescaped. Half a surrogate pair becomes U+FFFD.
    #[must_use]
    pub fn bytes(&self) -> Option<Cow<'a, [u8]>> {
        string(self.raw(), Broken::Replace)
    }

    /// The text of a string; damaged bytes become U+FFFD.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        self.bytes().map(lossy)
    }

    /// A whole number that fits.
    #[must_use]
    pub fn u64(&self) -> Option<u64> {
        std::str::from_utf8(self.raw()).ok()?.parse().ok()
    }

    /// A whole number that fits.
    #[must_use]
    pub fn i64(&self) -> Option<i64> {
        std::str::from_utf8(self.raw()).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(record: &str, key: &str) -> Option<String> {
        Value::of(record.as_bytes())?
            .get(key)?
            .text()
            .map(Cow::into_owned)
    }

    #[test]
    fn a_member_is_found_whatever_the_order_and_white_space() {
        let r = " { \"a\" : [1, {\"type\":\"x\"}] ,\t\"type\" : \"user\" } ";
        assert_eq!(get(r, "type").as_deref(), Some("user"));
    }

    #[test]
    fn escaped_keys_and_values_are_unescaped() {
        assert_eq!(
            get(r#"{"\u0074ype":"\u0075ser \ud83c\udf89\n"}"#, "type").as_deref(),
            Some("user 🎉\n")
        );
    }

    #[test]
    fn the_first_of_duplicate_keys_counts() {
        assert_eq!(
            get(r#"{"type":"a","type":"b"}"#, "type").as_deref(),
            Some("a")
        );
    }

    #[test]
    fn half_a_surrogate_pair_is_shown_but_never_a_content() {
        let token = br#""x\ud83d""#;
        assert_eq!(
            string(token, Broken::Replace).unwrap().as_ref(),
            "x\u{fffd}".as_bytes()
        );
        assert!(string(token, Broken::Refuse).is_none());
    }

    #[test]
    fn bytes_that_are_no_utf8_are_kept() {
        let record = b"{\"a\":\"x\xff\"}";
        let value = Value::of(record).unwrap().get("a").unwrap();
        assert_eq!(value.bytes().unwrap().as_ref(), b"x\xff");
        assert_eq!(value.text().unwrap(), "x\u{fffd}");
    }

    #[test]
    fn a_record_nested_100000_deep_is_skipped_without_recursion() {
        let mut r = vec![b'['; 100_000];
        r.extend(vec![b']'; 100_000]);
        assert_eq!(skip(&r, 0), Ok(200_000));
        r.pop();
        assert_eq!(skip(&r, 0), Err(Stop::More));
    }

    #[test]
    fn a_cut_record_asks_for_more_at_every_byte() {
        let r = br#"{"a":"x\"y","b":[1,{"c":null}],"d":true}"#;
        assert_eq!(skip(r, 0), Ok(r.len()));
        for n in 0..r.len() {
            assert_eq!(skip(&r[..n], 0), Err(Stop::More), "cut at {n}");
        }
    }

    #[test]
    fn null_is_absent_unless_asked_for() {
        let v = Value::of(b"{\"a\":null}").unwrap();
        assert!(v.get("a").is_none());
        assert!(v.member("a").unwrap().is_null());
    }

    #[test]
    fn items_of_an_array_come_in_order() {
        let v = Value::of(b"[ 1 ,\"]\", [2] , {}]").unwrap();
        let raw: Vec<_> = v.items().map(|i| i.raw().to_vec()).collect();
        assert_eq!(raw, [&b"1"[..], b"\"]\"", b"[2]", b"{}"]);
        assert_eq!(Value::of(b"[]").unwrap().items().count(), 0);
    }
}
