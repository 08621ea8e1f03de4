//! A number of bytes as a user names it.

/// Reads `512`, `32MiB`, `5 GB`; `None` for anything else.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "TiB" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_nothing_else_is() {
        assert_eq!(parse("5GB"), Some(5_000_000_000));
        assert_eq!(parse(" 2 MiB "), Some(2 << 20));
        assert_eq!(parse("0"), Some(0));
        for odd in ["", "GB", "-1", "1.5GB", "much", "99999999999TB"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
