//! `man/rewind-json.5` is the JSON contract in words: it tells of every object and member that is printed, and its
//! examples are of that form.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::json::{Shape, objects, shape};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rewind-json.5");
    fs::read_to_string(path).unwrap()
}

/// The examples of the page, by their schema.
fn examples() -> BTreeMap<String, Value> {
    let page = page();
    let blocks = page.split(".Bd -literal\n").skip(1);
    let blocks = blocks.map(|b| b.split_once("\n.Ed").unwrap().0.replace("\\e", "\\"));
    let read = |b: String| {
        let value: Value = serde_json::from_str(&b).unwrap_or_else(|e| panic!("{e}: {b}"));
        (value["schema"].as_str().unwrap().to_owned(), value)
    };
    blocks.map(read).collect()
}

static EXAMPLES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(examples);

/// The members that the page tells of.
static TOLD: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let page = page();
    let items = page.lines().filter_map(|l| l.strip_prefix(".It Va "));
    let words = items.flat_map(|l| l.split([' ', ',']).map(str::to_owned));
    words.filter(|w| !w.is_empty()).collect()
});

/// Holds every object that a run of the program printed, on either stream and in whatever test, to the page: its schema is
/// there, it has the members of the example and no others, of the same types, and every member inside is told of.
#[track_caller]
pub(crate) fn hold(printed: &str) {
    for line in printed
        .lines()
        .filter(|l| l.starts_with("{\"schema\":\"rewind."))
    {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        hold_object(&value);
        for inner in ["plan", "result"].iter().filter_map(|m| value.get(m)) {
            hold_object(inner);
        }
    }
}

#[track_caller]
fn hold_object(value: &Value) {
    let schema = value["schema"].as_str().unwrap();
    let example = EXAMPLES.get(schema);
    let example = example.unwrap_or_else(|| panic!("{schema} is not in the page: {value}"));
    let (members, told) = (value.as_object().unwrap(), example.as_object().unwrap());
    let names = |o: &serde_json::Map<String, Value>| -> BTreeSet<String> {
        o.keys().filter(|k| *k != "path_bytes").cloned().collect()
    };
    assert_eq!(names(members), names(told), "{schema}: {value}");
    for (name, member) in members {
        let like = told.get(name).unwrap_or(&Value::Null);
        let same = std::mem::discriminant(member) == std::mem::discriminant(like);
        assert!(
            same || member.is_null() || like.is_null(),
            "{schema}: {name}: {member}"
        );
    }
    for path in shape(value).keys() {
        let name = path.rsplit(['.', ']']).next().unwrap();
        assert!(
            name.is_empty() || TOLD.contains(name),
            "{schema}: {path} is not told of"
        );
    }
}

#[test]
#[should_panic(expected = "rewind.redone/1 is not in the page")]
fn a_schema_that_the_page_does_not_know_is_found() {
    hold("{\"schema\":\"rewind.redone/1\"}");
}

#[test]
#[should_panic(expected = "rewind.step/1")]
fn a_member_that_is_missing_is_found() {
    hold(r#"{"schema":"rewind.step/1","event":"step","n":1,"of":2}"#);
}

#[test]
#[should_panic(expected = "rewind.step/1: n: \"1\"")]
fn a_member_of_another_type_is_found() {
    hold(r#"{"schema":"rewind.step/1","event":"step","n":"1","of":2,"path":"a"}"#);
}

/// The names of all schemas that stand in the source of what prints.
fn schemas() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![src.join("cmd"), src.join("ui")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            let quoted = text
                .split('"')
                .filter(|t| t.starts_with("rewind.") && t.ends_with("/1"));
            names.extend(quoted.map(str::to_owned));
        }
    }
    names
}

#[test]
fn the_manual_page_has_an_example_of_each_object_and_none_that_is_not_printed() {
    let objects = objects();
    let examples = examples();
    let printed: BTreeSet<String> = objects.keys().cloned().collect();
    assert_eq!(printed, schemas());
    assert_eq!(examples.keys().cloned().collect::<BTreeSet<_>>(), printed);
    for (schema, object) in &objects {
        let (real, told) = (shape(object), shape(&examples[schema]));
        let of = |s: &Shape| -> BTreeSet<String> {
            let top = |k: &&String| !k.contains(['.', '[']);
            s.keys().filter(top).cloned().collect()
        };
        assert_eq!(of(&real), of(&told), "{schema}");
        for (member, kinds) in &told {
            let known = real
                .get(member)
                .unwrap_or_else(|| panic!("{schema}: {member}"));
            let null = |k: &&str| *k != "null";
            let known: BTreeSet<_> = known.iter().copied().filter(null).collect();
            let kinds: BTreeSet<_> = kinds.iter().copied().filter(null).collect();
            assert!(
                kinds.is_subset(&known) || known.is_empty(),
                "{schema}: {member}: {kinds:?}"
            );
        }
    }
}

#[test]
fn the_manual_page_tells_of_every_member() {
    let page = page();
    for (schema, object) in objects() {
        for member in shape(&object).keys() {
            let name = member.rsplit(['.', ']']).next().unwrap();
            if name.is_empty() {
                continue;
            }
            let told = page.lines().any(|l| {
                let words = l.strip_prefix(".It Va ").unwrap_or_default();
                words.split([' ', ',']).any(|w| w == name)
            });
            assert!(told, "{schema}: {member} has no `.It Va {name}`");
        }
    }
}
