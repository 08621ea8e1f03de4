//! The bytes that a JSON string token stands for: escapes and surrogate pairs, and nothing made up where half a pair
//! stands alone.

use std::borrow::Cow;

/// What to do with half a surrogate pair in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It becomes U+FFFD: for text that is shown.
    Replace,
    /// The string has no bytes: for contents that would be written.
    Refuse,
}

/// Returns the bytes that a string token, quotes included, stands for.
#[must_use]
pub fn string(token: &[u8], broken: Broken) -> Option<Cow<'_, [u8]>> {
    let inner = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    unescape(inner, broken)
}

pub(super) fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(b) => String::from_utf8_lossy(b),
        Cow::Owned(b) => Cow::Owned(String::from_utf8_lossy(&b).into_owned()),
    }
}

pub(super) fn unescape(inner: &[u8], broken: Broken) -> Option<Cow<'_, [u8]>> {
    if memchr::memchr(b'\\', inner).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(hit) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(hit);
        out.extend_from_slice(plain);
        let code = *escape.get(1)?;
        rest = escape.get(2..)?;
        match code {
            b'"' | b'\\' | b'/' => out.push(code),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => rest = unicode(rest, &mut out, broken)?,
            _ => return None,
        }
    }
    out.extend_from_slice(rest);
    Some(Cow::Owned(out))
}

/// Takes `XXXX` and, for a pair, the second escape; appends the character.
fn unicode<'a>(rest: &'a [u8], out: &mut Vec<u8>, broken: Broken) -> Option<&'a [u8]> {
    let high = hex4(rest)?;
    let mut rest = rest.get(4..)?;
    let mut code = u32::from(high);
    if (0xD800..0xDC00).contains(&high)
        && rest.starts_with(b"\\u")
        && let Some(low) = rest.get(2..).and_then(hex4)
        && (0xDC00..0xE000).contains(&low)
    {
        code = 0x1_0000 + ((code - 0xD800) << 10) + (u32::from(low) - 0xDC00);
        rest = rest.get(6..)?;
    }
    let c = match (char::from_u32(code), broken) {
        (Some(c), _) => c,
        (None, Broken::Replace) => char::REPLACEMENT_CHARACTER,
        (None, Broken::Refuse) => return None,
    };
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

fn hex4(bytes: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(bytes.get(..4)?).ok()?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}
