//! The `apply_patch` envelope: which files a patch text names and how each changes.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: new.txt
//! +line
//! *** Update File: src/a.rs
//! *** Move to: src/b.rs
//! @@ fn main() {
//! -old
//! +new
//! *** Delete File: gone.txt
//! *** End Patch
//! ```
//!
//! Hunks have no line numbers, so they are checked for their shape and left alone.

use std::path::PathBuf;

/// How one file changes in a patch text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SectionKind {
    /// The file is written with this content, whatever was there.
    Add(Vec<u8>),
    /// The file goes away.
    Delete,
    /// The file is edited, and moved where a new path is named.
    Update(Option<PathBuf>),
}

/// One file of a patch text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The path as it stands in the text.
    pub path: PathBuf,
    /// How it changes.
    pub kind: SectionKind,
}

/// Reads a patch text; `None` where a line of it is not understood, so that nothing is taken for half a patch.
#[must_use]
pub fn envelope(text: &[u8]) -> Option<Vec<Section>> {
    let mut lines = text.trim_ascii().split(|b| *b == b'\n').map(bare);
    if lines.next()?.trim_ascii() != b"*** Begin Patch" {
        return None;
    }
    let mut sections: Vec<Section> = Vec::new();
    for line in lines.by_ref() {
        let marker = line.trim_ascii();
        if marker == b"*** End Patch" {
            return lines.all(|l| l.trim_ascii().is_empty()).then_some(sections);
        }
        match opens(marker) {
            Some((name, kind)) => sections.push(Section {
                path: path(name)?,
                kind,
            }),
            None => body(sections.last_mut(), line)?,
        }
    }
    None
}

/// Without the CR of a CRLF line end.
fn bare(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The section that a line opens, if it opens one: the name in it, and its kind.
fn opens(marker: &[u8]) -> Option<(&[u8], SectionKind)> {
    let add = (&b"*** Add File: "[..], SectionKind::Add(Vec::new()));
    let delete = (&b"*** Delete File: "[..], SectionKind::Delete);
    let update = (&b"*** Update File: "[..], SectionKind::Update(None));
    [add, delete, update]
        .into_iter()
        .find_map(|(prefix, kind)| Some((marker.strip_prefix(prefix)?, kind)))
}

/// A path of the text; patch text is text, so bytes that are no UTF-8 name no file.
fn path(name: &[u8]) -> Option<PathBuf> {
    let name = std::str::from_utf8(name.trim_ascii()).ok()?;
    (!name.is_empty()).then(|| PathBuf::from(name))
}

/// Takes a line that opens no section.
fn body(section: Option<&mut Section>, line: &[u8]) -> Option<()> {
    let Some(section) = section else {
        let marker = line.trim_ascii();
        return (marker.is_empty() || marker.starts_with(b"*** Environment ID:")).then_some(());
    };
    match &mut section.kind {
        SectionKind::Add(content) => {
            content.extend_from_slice(line.strip_prefix(b"+")?);
            content.push(b'\n');
            Some(())
        }
        SectionKind::Delete => line.trim_ascii().is_empty().then_some(()),
        SectionKind::Update(to) => update(to, line),
    }
}

/// Takes a line of an update: a new path, an anchor, or a line of a hunk.
fn update(to: &mut Option<PathBuf>, line: &[u8]) -> Option<()> {
    if let Some(name) = line.trim_ascii().strip_prefix(b"*** Move to: ") {
        // A second new path would leave it open where the file went.
        if to.is_some() {
            return None;
        }
        *to = Some(path(name)?);
        return Some(());
    }
    let known = matches!(line.first(), None | Some(b' ' | b'+' | b'-'))
        || line.starts_with(b"@@")
        || line.trim_ascii() == b"*** End of File";
    known.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_section_is_told_apart() {
        let text = b"*** Begin Patch\n*** Add File: a b.txt\n+one\n++two\n+\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@ fn main() {\n ctx\n-old\n+new\n*** End of File\n*** Delete File: gone.txt\n*** Update File: c\n@@\n-x\n+y\n*** End Patch\n";
        let got = envelope(text).unwrap();
        let kinds: Vec<_> = got
            .iter()
            .map(|s| (s.path.to_str().unwrap(), s.kind.clone()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a b.txt", SectionKind::Add(b"one\n+two\n\n".to_vec())),
                (
                    "src/a.rs",
                    SectionKind::Update(Some(PathBuf::from("src/b.rs")))
                ),
                ("gone.txt", SectionKind::Delete),
                ("c", SectionKind::Update(None)),
            ]
        );
    }

    #[test]
    fn half_a_patch_is_no_patch() {
        let text = b"*** Begin Patch\n*** Add File: a\n+one\n*** Delete File: b\n*** End Patch";
        assert!(envelope(text).is_some());
        for n in 0..text.len() {
            assert!(envelope(&text[..n]).is_none(), "cut at {n}");
        }
    }

    #[test]
    fn a_line_that_is_not_understood_refuses_the_whole_patch() {
        for odd in [
            &b"*** Begin Patch\n*** Rename File: a\n*** End Patch"[..],
            b"*** Begin Patch\nloose\n*** End Patch",
            b"*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch",
            b"*** Begin Patch\n*** Add File: \n+x\n*** End Patch",
            b"*** Begin Patch\n*** Add File: \xff\n+x\n*** End Patch",
            b"*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch",
            b"*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Move to: c\n*** End Patch",
            b"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nrm -rf x",
        ] {
            assert_eq!(envelope(odd), None, "{}", String::from_utf8_lossy(odd));
        }
    }
}
