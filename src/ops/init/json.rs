//! Adds members to a JSON file of the user's, and takes them out again, by splicing its text: what is not ours keeps every
//! byte, also comments and trailing commas, which some agents allow.

use crate::format::json::Value;

/// Why a file is not touched.
pub(super) type Refused = String;

/// The text with comments and trailing commas turned into blanks, byte for byte, so that places in one are places in the
/// other.
fn bare(text: &[u8]) -> Vec<u8> {
    let mut out = uncommented(text);
    trailing_commas(&mut out);
    out
}

fn uncommented(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let mut at = 0;
    let blank = |out: &mut Vec<u8>, from: usize, to: usize| {
        for b in out.get_mut(from..to).into_iter().flatten() {
            if *b != b'\n' && *b != b'\r' {
                *b = b' ';
            }
        }
    };
    while let Some(b) = text.get(at) {
        match (b, text.get(at + 1)) {
            (b'"', _) => at = string_end(text, at),
            (b'/', Some(b'/')) => {
                let rest = text.get(at..).unwrap_or_default();
                let end = at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                blank(&mut out, at, end);
                at = end;
            }
            (b'/', Some(b'*')) => {
                let rest = text.get(at + 2..).unwrap_or_default();
                let len = memchr::memmem::find(rest, b"*/").map_or(rest.len(), |n| n + 2);
                blank(&mut out, at, at + 2 + len);
                at += 2 + len;
            }
            _ => at += 1,
        }
    }
    out
}

fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(b) = text.get(at) {
        match b {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn trailing_commas(text: &mut [u8]) {
    let (mut at, mut comma) = (0, None);
    while let Some(b) = text.get(at).copied() {
        match b {
            b'"' => {
                at = string_end(text, at);
                comma = None;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(c) = comma.take().and_then(|c: usize| text.get_mut(c)) {
                    *c = b' ';
                }
            }
            b if b.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
}

/// The text, bare, as a JSON object; an empty file is an empty object.
///
/// # Errors
/// It is no JSON object.
pub(super) struct Page {
    text: Vec<u8>,
    bare: Vec<u8>,
}

impl Page {
    pub(super) fn new(text: Vec<u8>) -> Result<Self, Refused> {
        let bare = bare(&text);
        let body = bare.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bare);
        let whole: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(body);
        whole.map_err(|e| format!("it is no JSON: {e}"))?;
        let page = Self { text, bare };
        page.root().ok_or("it is no JSON object")?;
        Ok(page)
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    fn root(&self) -> Option<Value<'_>> {
        let lead = self.bare.iter().take_while(|b| **b != b'{').count();
        Value::scan(&self.bare, lead).ok().filter(Value::is_object)
    }

    pub(super) fn member(&self, path: &[&str]) -> Option<Value<'_>> {
        path.iter().try_fold(self.root()?, |v, name| v.get(name))
    }

    /// Adds an item to the array at a path, and what is missing on the way.
    ///
    /// # Errors
    /// Something else stands on the way.
    pub(super) fn add(self, path: &[&str; 2], item: &str) -> Result<Self, Refused> {
        let [outer, inner] = *path;
        let u = self.unit();
        let root = self.root().ok_or("it is no JSON object")?;
        let Some(object) = root.get(outer) else {
            let value = format!("{{\n{u}{u}\"{inner}\": [\n{u}{u}{u}{item}\n{u}{u}]\n{u}}}");
            let (start, end) = (root.start, root.end);
            return self.insert(start, end, &u, &format!("\"{outer}\": {value}"));
        };
        if !object.is_object() {
            return Err(format!("`{outer}` is no object in it"));
        }
        let Some(list) = object.get(inner) else {
            let value = format!("\"{inner}\": [\n{u}{u}{u}{item}\n{u}{u}]");
            let (start, end) = (object.start, object.end);
            return self.insert(start, end, &u.repeat(2), &value);
        };
        if !list.is_array() {
            return Err(format!("`{outer}.{inner}` is no list in it"));
        }
        let (start, end) = (list.start, list.end);
        self.insert(start, end, &u.repeat(3), item)
    }

    /// How far one step is indented.
    fn unit(&self) -> String {
        let lines = self.bare.split(|b| *b == b'\n').skip(1);
        let step = lines
            .filter(|l| !l.trim_ascii().is_empty())
            .map(|l| {
                let blank = l.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
                l.get(..blank).unwrap_or_default().to_vec()
            })
            .find(|s| !s.is_empty());
        step.and_then(|s| String::from_utf8(s).ok())
            .unwrap_or_else(|| "  ".to_owned())
    }

    /// Puts an element in front of the bracket that closes the object or list at `start..end`.
    fn insert(self, start: usize, end: usize, indent: &str, what: &str) -> Result<Self, Refused> {
        let close = end.saturating_sub(1);
        let inside = self.bare.get(start + 1..close).unwrap_or_default();
        let text = self.text.get(start + 1..close).unwrap_or_default();
        let last = |bytes: &[u8]| {
            let blank = bytes.iter().rev().take_while(|b| b.is_ascii_whitespace());
            start + 1 + bytes.len() - blank.count()
        };
        // Where the last element ends, and where the last thing ends, which may be a comment behind it.
        let (value, thing) = (last(inside), last(text));
        let empty = inside.trim_ascii().is_empty();
        let one_line = !inside.contains(&b'\n') && !empty;
        let trailing = !empty && self.has_comma(value, thing);
        let comma = !empty && !trailing;
        let mut out = self.text.get(..value).unwrap_or_default().to_vec();
        if comma {
            out.push(b',');
        }
        out.extend_from_slice(self.text.get(value..thing).unwrap_or_default());
        let newline = if self.text.contains(&b'\r') {
            "\r\n"
        } else {
            "\n"
        };
        if one_line {
            out.push(b' ');
            out.extend_from_slice(what.replace('\n', " ").as_bytes());
        } else {
            out.extend_from_slice(newline.as_bytes());
            out.extend_from_slice(indent.as_bytes());
            out.extend_from_slice(what.replace('\n', newline).as_bytes());
        }
        // In the manner of the list.
        if trailing {
            out.push(b',');
        }
        let rest = self.text.get(thing..).unwrap_or_default();
        if empty && !rest.starts_with(b"\n") && !rest.starts_with(b"\r") {
            let outer = indent.len().saturating_sub(self.unit().len());
            out.extend_from_slice(newline.as_bytes());
            out.extend_from_slice(indent.get(..outer).unwrap_or_default().as_bytes());
            out.extend_from_slice(rest.trim_ascii_start());
        } else {
            out.extend_from_slice(rest);
        }
        Self::new(out)
    }

    /// Whether a trailing comma stands between the last element and the bracket.
    fn has_comma(&self, value: usize, thing: usize) -> bool {
        let text = uncommented(&self.text);
        text.get(value..thing).is_some_and(|t| t.contains(&b','))
    }

    /// Takes out everything between two places and one comma beside it.
    fn cut(self, start: usize, end: usize) -> Result<Self, Refused> {
        let plain = uncommented(&self.text);
        let before = self.bare.get(..start).unwrap_or_default();
        let after = plain.get(end..).unwrap_or_default();
        let blank = |b: &&u8| b.is_ascii_whitespace();
        let lead = before.iter().rev().take_while(blank).count();
        let follow = after.iter().take_while(blank).count();
        let from = self.last_thing(start);
        let (mut to, mut comma) = (end, None);
        if after.get(follow) == Some(&b',') {
            to = end + follow + 1;
        } else if before.len() > lead {
            let at = before.len() - lead - 1;
            comma = (before.get(at) == Some(&b',')).then_some(at);
        }
        let mut out = self.text.get(..from).unwrap_or_default().to_vec();
        if let Some(comma) = comma.filter(|c| *c < from) {
            out.remove(comma);
        }
        out.extend_from_slice(self.text.get(to..).unwrap_or_default());
        Self::new(out)
    }

    /// The end of what stands before a place: an element, a bracket, a comment.
    fn last_thing(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        at - before
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_whitespace())
            .count()
    }

    /// Takes out the items of the lists in an object for which `ours` holds, then the lists and the object that this left
    /// empty. Of an item with a list `hooks` only the hooks of ours go.
    ///
    /// # Errors
    /// What is left would be no JSON: a bug of ours.
    pub(super) fn take_out(
        mut self,
        outer: &str,
        ours: &dyn Fn(&Value<'_>) -> bool,
    ) -> Result<(Self, usize), Refused> {
        let mut lists = Vec::new();
        while let Some((list, start, end)) = self.find(outer, ours) {
            self = self.cut(start, end)?;
            lists.push(list);
        }
        let taken = lists.len();
        lists.dedup();
        for list in lists {
            self = self.cut_if_empty(&[outer, &list])?;
        }
        if taken > 0 {
            self = self.cut_if_empty(&[outer])?;
        }
        Ok((self, taken))
    }

    fn cut_if_empty(self, path: &[&str]) -> Result<Self, Refused> {
        let empty = self
            .member(path)
            .filter(|v| v.items().next().is_none() && v.entries().next().is_none());
        match empty.and_then(|v| Some((self.name_of(&v)?, v.end))) {
            Some((start, end)) => self.cut(start, end),
            None => Ok(self),
        }
    }

    fn find(
        &self,
        outer: &str,
        ours: &dyn Fn(&Value<'_>) -> bool,
    ) -> Option<(String, usize, usize)> {
        let object = self.member(&[outer])?;
        for (name, list) in object.entries() {
            let at = |v: &Value<'_>| Some((name.clone().into_owned(), v.start, v.end));
            for item in list.items() {
                let Some(inner) = item.get("hooks").filter(Value::is_array) else {
                    if ours(&item) {
                        return at(&item);
                    }
                    continue;
                };
                let all: Vec<Value<'_>> = inner.items().collect();
                if !all.is_empty() && all.iter().all(ours) {
                    return at(&item);
                }
                if let Some(one) = all.iter().find(|h| ours(h)) {
                    return at(one);
                }
            }
        }
        None
    }

    /// Where the name of a member begins, given its value.
    fn name_of(&self, value: &Value<'_>) -> Option<usize> {
        let before = self.bare.get(..value.start)?;
        let colon = before.iter().rposition(|b| *b == b':')?;
        let close = before.get(..colon)?.iter().rposition(|b| *b == b'"')?;
        before.get(..close)?.iter().rposition(|b| *b == b'"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, event: &str) -> String {
        let page = Page::new(text.as_bytes().to_vec()).unwrap();
        let out = page
            .add(&["hooks", event], "{ \"command\": \"rewind hook x\" }")
            .unwrap();
        String::from_utf8(out.into_text()).unwrap()
    }

    fn ours(v: &Value<'_>) -> bool {
        v.get("command").is_some_and(|c| c.is_str("rewind hook x"))
    }

    fn taken(text: &str) -> (String, usize) {
        let page = Page::new(text.as_bytes().to_vec()).unwrap();
        let (page, n) = page.take_out("hooks", &ours).unwrap();
        (String::from_utf8(page.into_text()).unwrap(), n)
    }

    /// Settings as people have them: comments, trailing commas, foreign hooks, tabs, CRLF, one line.
    const PAGES: [&str; 12] = [
        "{\n  \"model\": \"m\"\n}\n",
        "{\n  // mine\n  \"model\": \"m\", // last, and a comma\n}\n",
        "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}",
        "{\r\n  \"a\": 1\r\n}\r\n",
        "{\"a\":1}",
        "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"E\": [\n      { \"hooks\": [{ \"command\": \"other\" }] } /* x, y */\n    ]\n  },\n  \"z\": 1\n}\n",
        "{\n  \"hooks\": {\n    \"E\": [\n      1, // one\n    ],\n  },\n}\n",
        "{ \"hooks\": { \"E\": [1] } }",
        "\u{feff}{\n  \"a\": \"// no comment, \\\" neither\"\n}\n",
        "{\n    \"hooks\": {\n        \"E\": [\n        ]\n    }\n}\n",
        "{\n  \"a\": [1, 2,],\n  /* b */\n}\n",
    ];

    #[test]
    fn what_is_added_and_taken_out_leaves_the_text_as_it_was() {
        for text in PAGES {
            for event in ["E", "F"] {
                let with = added(text, event);
                let value: serde_json::Value =
                    serde_json::from_slice(&bare(with.trim_start_matches('\u{feff}').as_bytes()))
                        .unwrap();
                let list = value["hooks"][event].as_array().unwrap();
                assert_eq!(list.last().unwrap()["command"], "rewind hook x", "{with}");
                let (without, n) = taken(&with);
                assert_eq!(n, 1, "{with}");
                // A list that was empty before goes with what was in it; saved bytes bring that one back.
                if !text.contains("[\n        ]") || event == "F" {
                    assert_eq!(without, text, "{with}");
                }
            }
        }
    }

    #[test]
    fn several_events_are_added_one_behind_the_other() {
        let text = "{\n  \"a\": 1\n}\n";
        let all = added(&added(&added(text, "E"), "F"), "G");
        assert_eq!(
            all,
            "{\n  \"a\": 1,\n  \"hooks\": {\n    \"E\": [\n      { \"command\": \"rewind hook x\" }\n    ],\n    \"F\": [\n      { \"command\": \"rewind hook x\" }\n    ],\n    \"G\": [\n      { \"command\": \"rewind hook x\" }\n    ]\n  }\n}\n"
        );
        assert_eq!(taken(&all), (text.to_owned(), 3));
    }

    #[test]
    fn only_ours_is_taken_out_of_a_group_that_holds_more() {
        let text = "{\"hooks\":{\"E\":[{\"hooks\":[{\"command\":\"a\"},{\"command\":\"rewind hook x\"}]}],\"S\":[]}}";
        assert_eq!(
            taken(text),
            (
                "{\"hooks\":{\"E\":[{\"hooks\":[{\"command\":\"a\"}]}],\"S\":[]}}".to_owned(),
                1
            )
        );
    }

    #[test]
    fn what_is_no_json_or_stands_in_the_way_is_refused() {
        for odd in ["", "[]", "{", "{\"a\" 1}", "{}{}", "# toml"] {
            assert!(Page::new(odd.as_bytes().to_vec()).is_err(), "{odd}");
        }
        for odd in ["{\"hooks\":[]}", "{\"hooks\":{\"E\":{}}}", "{\"hooks\":1}"] {
            let page = Page::new(odd.as_bytes().to_vec()).unwrap();
            assert!(page.add(&["hooks", "E"], "1").is_err(), "{odd}");
        }
    }
}
