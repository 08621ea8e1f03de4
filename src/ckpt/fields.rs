//! Members of a record: keys as Go matches them, values of the type that the record must have there.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::format::json::{self, Value};

/// A value of another type than the record may hold there, or a key that is there twice: the record is damaged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrong;

/// The members of these names, whatever their case; a name that is there twice has no meaning.
pub(super) fn members<'a, const N: usize>(
    object: &Value<'a>,
    names: [&str; N],
) -> Result<[Option<Value<'a>>; N], Wrong> {
    if !object.is_object() {
        return Err(Wrong);
    }
    let mut found = [None; N];
    for (key, value) in object.entries() {
        let slot = names.iter().zip(found.iter_mut());
        if let Some((_, slot)) = slot.into_iter().find(|(name, _)| same_key(name, &key))
            && slot.replace(value).is_some()
        {
            return Err(Wrong);
        }
    }
    Ok(found)
}

/// Go folds the Kelvin sign and the long s too; a `ſha256` that was overlooked would turn a content into an absence.
pub(super) fn same_key(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{212A}' => 'k',
        '\u{17F}' => 's',
        c => c.to_ascii_lowercase(),
    };
    key.len() <= name.len() * 3 && name.chars().map(fold).eq(key.chars().map(fold))
}

/// The text of a string; nothing for null.
pub(super) fn string(value: Option<Value<'_>>) -> Result<Option<String>, Wrong> {
    match value.filter(|v| !v.is_null()) {
        None => Ok(None),
        Some(v) => v.text().map(|t| Some(t.into_owned())).ok_or(Wrong),
    }
}

/// A path; nothing for null and the empty string.
pub(super) fn path(value: Option<Value<'_>>) -> Result<Option<PathBuf>, Wrong> {
    let Some(value) = value.filter(|v| !v.is_null()) else {
        return Ok(None);
    };
    let bytes = json::string(value.raw(), json::Broken::Refuse).ok_or(Wrong)?;
    let some = !bytes.is_empty();
    Ok(some.then(|| PathBuf::from(OsString::from_vec(bytes.into_owned()))))
}

/// A flag; `false` when it is not there.
pub(super) fn flag(value: Option<Value<'_>>) -> Result<bool, Wrong> {
    match value.map(|v| v.raw()) {
        None | Some(b"false" | b"null") => Ok(false),
        Some(b"true") => Ok(true),
        Some(_) => Err(Wrong),
    }
}
