//! A time as a user names it: so long ago, or a date.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

/// A time that is known once the present is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long before now.
    Ago(TimeDelta),
    /// This very time.
    At(DateTime<Utc>),
}

impl When {
    /// Reads `30m`, `12h`, `7d`, `2w`, `2026-11-01` or an RFC 3339 time.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return Some(Self::At(at.to_utc()));
        }
        if let Ok(day) = text.parse::<NaiveDate>() {
            return Some(Self::At(day.and_time(NaiveTime::MIN).and_utc()));
        }
        let split = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(split);
        let seconds = match unit.trim() {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return None,
        };
        let number: i64 = number.parse().ok()?;
        TimeDelta::try_seconds(number.checked_mul(seconds)?).map(Self::Ago)
    }

    /// The time that is meant; one before all time is the first there is.
    #[must_use]
    pub fn before(self, now: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now
                .checked_sub_signed(ago)
                .unwrap_or(DateTime::<Utc>::MIN_UTC),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates_are_read_and_nothing_else_is() {
        let now = DateTime::parse_from_rfc3339("2026-12-01T12:00:00Z")
            .unwrap()
            .to_utc();
        let at = |t: &str| When::parse(t).map(|w| w.before(now).to_rfc3339());
        assert_eq!(at("30m").unwrap(), "2026-12-01T11:30:00+00:00");
        assert_eq!(at("2w").unwrap(), "2026-11-17T12:00:00+00:00");
        assert_eq!(at("2026-11-01").unwrap(), "2026-11-01T00:00:00+00:00");
        assert_eq!(
            at("2026-11-01T02:00:00+02:00").unwrap(),
            "2026-11-01T00:00:00+00:00"
        );
        for bad in [
            "",
            "d",
            "7",
            "7y",
            "-1d",
            "1.5h",
            "999999999999999999d",
            "d7",
        ] {
            assert_eq!(When::parse(bad), None, "{bad}");
        }
        // Before all time, and still a time.
        assert!(When::parse("99999999999d").is_some_and(|w| w.before(now) < now));
    }
}
