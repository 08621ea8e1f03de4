//! Adds `[[hooks]]` tables to a TOML file of the user's, and takes them out again. What is not ours keeps every byte.

use toml_edit::{DocumentMut, Item, Table};

/// Adds tables at the end of the text, where a table of a list may always stand.
///
/// # Errors
/// It is no TOML, or `hooks` is something else in it.
pub(super) fn add(text: &str, tables: &[String]) -> Result<String, String> {
    let page: DocumentMut = parse(text)?;
    match page.get("hooks") {
        None | Some(Item::ArrayOfTables(_)) => {}
        Some(_) => return Err("`hooks` is no list of tables (`[[hooks]]`) in it".to_owned()),
    }
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    for table in tables {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(table);
    }
    parse(&out)?;
    Ok(out)
}

/// Takes out the tables for which `ours` holds of their command: whole paragraphs of the text, so that a comment which
/// stands before or behind them stays.
///
/// # Errors
/// It is no TOML, or is none without them.
pub(super) fn take_out(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<(String, usize), String> {
    let before = commands(text)?;
    let count = |all: &[(String, String)]| all.iter().filter(|(_, c)| ours(c)).count();
    let taken = count(&before);
    if taken == 0 {
        return Ok((text.to_owned(), 0));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at + 1..).unwrap_or_default();
        let ends = |l: &&str| l.trim().is_empty() || l.trim_start().starts_with(['[', '#']);
        let len = 1 + rest.iter().position(ends).unwrap_or(rest.len());
        let block = lines.get(at..at + len).unwrap_or_default().concat();
        let is_ours = line.trim() == "[[hooks]]"
            && commands(&block).is_ok_and(|c| count(&c) == 1 && c.len() == 1);
        if is_ours {
            at += len;
            // The blank line that was put before it.
            if out.ends_with("\n\n") || out == "\n" {
                out.pop();
            }
        } else {
            out.push_str(line);
            at += 1;
        }
    }
    let after = commands(&out)?;
    let kept: Vec<_> = before.iter().filter(|(_, c)| !ours(c)).collect();
    if after.iter().collect::<Vec<_>>() != kept {
        return Err(
            "our tables cannot be told from the rest of it: take them out by hand".to_owned(),
        );
    }
    Ok((out, taken))
}

/// Whether a table with this command is there.
pub(super) fn commands(text: &str) -> Result<Vec<(String, String)>, String> {
    let page: DocumentMut = parse(text)?;
    let Some(Item::ArrayOfTables(all)) = page.get("hooks") else {
        return Ok(Vec::new());
    };
    let word = |t: &Table, name: &str| t.get(name).and_then(Item::as_str).map(str::to_owned);
    let told = |t: &Table| Some((word(t, "event")?, word(t, "command")?));
    Ok(all.iter().filter_map(told).collect())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|e: toml_edit::TomlError| format!("it is no TOML: {}", e.message().trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "[[hooks]]\nevent = \"E\"\ncommand = \"rewind hook x\"\n";

    #[test]
    fn what_is_added_and_taken_out_leaves_the_text_as_it_was() {
        for text in [
            "",
            "a = 1 # mine\n",
            "[t]\nb = [ 1,2 ]\n\n# the end\n",
            "a = 1\n\n\n",
            "[[hooks]]\nevent = \"S\"\ncommand = \"other\" # keep\n\n[z]\nq = 1\n",
        ] {
            let with = add(text, &[TABLE.to_owned(), TABLE.replace("\"E\"", "\"F\"")]).unwrap();
            assert!(with.starts_with(text), "{with}");
            let (without, n) = take_out(&with, &|c| c == "rewind hook x").unwrap();
            assert_eq!(n, 2);
            assert_eq!(without, text);
        }
    }

    #[test]
    fn what_is_no_toml_or_stands_in_the_way_is_refused() {
        for odd in ["a =", "hooks = 1\n", "[hooks]\na = 1\n", "hooks = []\n"] {
            assert!(add(odd, &[TABLE.to_owned()]).is_err(), "{odd}");
        }
    }
}
