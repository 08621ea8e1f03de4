//! JSON pointers (RFC 6901): the value at `/message/parts/0`.

use std::borrow::Cow;

use super::Value;

impl<'a> Value<'a> {
    /// The value that a pointer leads to, unless it is `null`; a name without a slash is a member.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<Value<'a>> {
        let Some(steps) = path.strip_prefix('/') else {
            return if path.is_empty() {
                Some(*self)
            } else {
                self.get(path)
            };
        };
        let mut at = *self;
        for step in steps.split('/') {
            at = if at.is_array() {
                at.items().nth(index(step)?)?
            } else {
                at.get(&member(step))?
            };
        }
        Some(at).filter(|v| !v.is_null())
    }
}

/// An index is digits without a leading zero.
fn index(step: &str) -> Option<usize> {
    let digits = step.bytes().all(|b| b.is_ascii_digit());
    let canonical = step == "0" || !step.starts_with('0');
    step.parse().ok().filter(|_| digits && canonical)
}

fn member(step: &str) -> Cow<'_, str> {
    if step.contains('~') {
        Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_through_objects_and_lists() {
        let record = br#"{"a":{"b/c":[{"~":1},2]},"n":null,"":3}"#;
        let value = Value::of(record).unwrap();
        let at = |path: &str| value.find(path).map(|v| v.raw());
        assert_eq!(at("/a/b~1c/0/~0"), Some(&b"1"[..]));
        assert_eq!(at("/a/b~1c/1"), Some(&b"2"[..]));
        assert_eq!(at("/a/b~1c/01"), None);
        assert_eq!(at("/a/b~1c/+1"), None);
        assert_eq!(at("/a/b~1c/2"), None);
        assert_eq!(at("/n"), None);
        assert_eq!(at("/n/x"), None);
        assert_eq!(at("/"), Some(&b"3"[..]));
        assert_eq!(at("a"), at("/a"));
        assert_eq!(at("").map(<[u8]>::len), Some(record.len()));
    }
}
