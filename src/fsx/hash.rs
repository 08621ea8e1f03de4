//! SHA-256 of what is read or written, as it streams by, and its spelling in hex.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// How much is read at a time.
pub const CHUNK: usize = 64 << 10;

/// Reads to the end and gives length and hash.
///
/// # Errors
/// Reading fails.
pub fn of_reader(mut from: impl Read) -> io::Result<(u64, [u8; 32])> {
    let mut hasher = Sha256::new();
    let mut len = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = match from.read(&mut chunk) {
            Ok(0) => return Ok((len, hasher.finalize().into())),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        hasher.update(chunk.get(..n).unwrap_or_default());
        len += n as u64;
    }
}

/// The hash of bytes at hand.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}

/// The bytes that a text of hex digits spells.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_spells_and_reads_back() {
        assert_eq!(hex(&[0, 0xAB, 0xFF]), "00abff");
        assert_eq!(unhex("00abff"), Some(vec![0, 0xAB, 0xFF]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("+1"), None);
        assert_eq!(unhex("é"), None);
    }

    #[test]
    fn a_stream_hashes_like_its_bytes() {
        let bytes = vec![7; CHUNK + 3];
        let (len, hash) = of_reader(&bytes[..]).unwrap();
        assert_eq!((len, hash), (CHUNK as u64 + 3, of_bytes(&bytes)));
    }
}
