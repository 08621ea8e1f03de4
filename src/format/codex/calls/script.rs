//! Patch texts inside other texts: the heredoc of a shell line, the string literals of code-mode JavaScript.
//!
//! ```text
//! cd sub && apply_patch <<'EOF'            const patch = "*** Begin Patch\n…*** End Patch";
//! *** Begin Patch                          await tools.apply_patch(patch);
//! *** End Patch
//! EOF
//! ```
//!
//! Only what is plainly there is taken. A text that a script puts together, or a line that does more than patch, is
//! left to be a gap.

/// A shell line whose whole effect is a patch.
pub(super) struct Heredoc<'a> {
    pub(super) folder: Option<&'a str>,
    pub(super) patch: &'a str,
}

/// Whether a program is a shell.
pub(super) fn is_shell(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    matches!(name, "sh" | "bash" | "zsh" | "dash")
}

/// Reads a shell line whose whole effect is a patch.
pub(super) fn heredoc(line: &str) -> Option<Heredoc<'_>> {
    let (first, rest) = line.trim().split_once('\n')?;
    let (folder, call) = match first.trim().strip_prefix("cd ") {
        Some(cd) => {
            let (folder, call) = cd.split_once("&&")?;
            (Some(plain_word(folder.trim())?), call.trim())
        }
        None => (None, first.trim()),
    };
    let call = call
        .strip_prefix("apply_patch")
        .or_else(|| call.strip_prefix("applypatch"))?;
    let word = call.trim_start().strip_prefix("<<")?.trim();
    // Without quotes the shell would change the text.
    let word = quoted(word, '\'').or_else(|| quoted(word, '"'))?;
    let patch = rest.strip_suffix(word)?.strip_suffix('\n')?;
    let ends_once = !word.is_empty() && patch.lines().all(|l| l != word);
    ends_once.then_some(Heredoc { folder, patch })
}

fn quoted(word: &str, quote: char) -> Option<&str> {
    word.strip_prefix(quote)?.strip_suffix(quote)
}

/// A word that the shell takes as it stands.
fn plain_word(word: &str) -> Option<&str> {
    if let Some(inner) = quoted(word, '\'') {
        return (!inner.contains('\'')).then_some(inner);
    }
    let fits = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    (!word.is_empty() && word.chars().all(fits)).then_some(word)
}

/// The tools that a script calls, in order.
pub(super) fn tools(js: &str) -> Vec<&str> {
    let name = |text: &str| {
        text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(text.len())
    };
    js.split("tools.")
        .skip(1)
        .filter_map(|rest| {
            let (tool, behind) = rest.split_at_checked(name(rest))?;
            (!tool.is_empty() && behind.trim_start().starts_with('(')).then_some(tool)
        })
        .collect()
}

/// The string literals of a script that are patch texts.
pub(super) fn patch_texts(js: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut from = 0;
    while let Some(hit) = js.get(from..).and_then(|rest| rest.find("*** Begin Patch")) {
        let at = from + hit;
        let lead = js.get(from..at).unwrap_or_default();
        let begun = lead.trim_end().chars().next_back();
        let read = begun
            .filter(|q| matches!(q, '"' | '\'' | '`'))
            .and_then(|quote| literal(js.get(at..)?, quote));
        match read {
            Some((text, len)) => {
                texts.push(text);
                from = at + len;
            }
            None => from = at + 1,
        }
    }
    texts
}

/// The first command that a script gives to the shell, where it stands there as a plain text.
pub(super) fn command(js: &str) -> Option<String> {
    let rest = js.split_once("cmd")?.1;
    let rest = rest.trim_start_matches(['"', '\'']).trim_start();
    let rest = rest.strip_prefix(':')?.trim_start();
    let quote = rest.chars().next().filter(|q| "\"'`".contains(*q))?;
    let (text, _) = literal(rest.get(1..)?, quote)?;
    Some(text.lines().next().unwrap_or("").to_owned())
}

/// Reads a string literal from behind its quote: its text, and how long it stands there without the closing quote.
/// `None` where its text is not certain (`${…}`, an unknown escape, no end).
fn literal(body: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => return Some((text, at)),
            '\\' => match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '\n' => {}
                c if c.is_ascii_alphanumeric() => text.push(escape(c, &mut chars)?),
                c => text.push(c),
            },
            '$' if quote == '`' && chars.peek().is_some_and(|(_, c)| *c == '{') => return None,
            '\n' if quote != '`' => return None,
            c => text.push(c),
        }
    }
    None
}

/// The character of `\xNN`, `\uNNNN`.
fn escape(kind: char, chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>) -> Option<char> {
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        _ => return None,
    };
    let hex: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
    if hex.len() != digits || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    char::from_u32(u32::from_str_radix(&hex, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_only_patches_is_told_from_one_that_does_more() {
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        let line = |first: &str, tail: &str| format!("{first}\n{patch}\nEOF{tail}");
        for (first, folder) in [
            ("apply_patch <<'EOF'", None),
            ("applypatch << \"EOF\"", None),
            ("cd sub/dir && apply_patch <<'EOF'", Some("sub/dir")),
            ("cd 'a b' && apply_patch <<'EOF'", Some("a b")),
        ] {
            let line = line(first, "\n");
            let got = heredoc(&line).unwrap();
            assert_eq!((got.folder, got.patch), (folder, patch), "{first}");
        }
        for (first, tail) in [
            ("apply_patch <<EOF", ""),
            ("apply_patch <<'EOF' && rm x", ""),
            ("cd $HOME && apply_patch <<'EOF'", ""),
            ("rm x; apply_patch <<'EOF'", ""),
            ("apply_patch <<'EOF'", "\nrm x"),
            ("apply_patch <<'EOF'", "\nrm x <<'EOF'\nEOF"),
        ] {
            assert!(heredoc(&line(first, tail)).is_none(), "{first}{tail}");
        }
    }

    #[test]
    fn patch_texts_of_a_script_are_read_as_javascript_reads_them() {
        let js = r#"const p = `*** Begin Patch
*** Add File: a
+\`x\` é \u00e9
*** End Patch`;
await tools.apply_patch(p); await tools.apply_patch("*** Begin Patch\n*** Delete File: b\n*** End Patch");"#;
        assert_eq!(
            patch_texts(js),
            [
                "*** Begin Patch\n*** Add File: a\n+`x` é é\n*** End Patch",
                "*** Begin Patch\n*** Delete File: b\n*** End Patch"
            ]
        );
        assert_eq!(tools(js), ["apply_patch", "apply_patch"]);
    }

    #[test]
    fn a_text_that_a_script_puts_together_is_not_taken() {
        for js in [
            "tools.apply_patch(`*** Begin Patch\n*** Add File: ${name}\n*** End Patch`)",
            r#"tools.apply_patch(["*** Begin Patch", x].join("\n"))"#,
            r#"tools.apply_patch("*** Begin Patch\q")"#,
            r#"tools.apply_patch("*** Begin Patch"#,
        ] {
            let whole = patch_texts(js)
                .iter()
                .filter(|t| t.contains("*** End Patch"))
                .count();
            assert_eq!(whole, 0, "{js}");
        }
    }
}
