//! The sessions to pick from, newest first as `rewind sessions` lists them.

use super::super::{Context, words};
use crate::ops::discover::Found;
use crate::ops::overview::{self, Overview};
use crate::ui::list::Rows;
use crate::ui::text::{fit, pad};
use crate::ui::{age, path_text, sanitise};

/// Sessions as rows.
pub(super) struct SessionRows {
    rows: Vec<Row>,
    folder: String,
    agent: usize,
}

struct Row {
    found: Found,
    agent: &'static str,
    age: String,
    turns: String,
    prompt: String,
}

impl SessionRows {
    pub(super) fn new(found: Vec<Found>, ctx: &Context<'_>) -> Self {
        let root = found.first().and_then(|f| f.card.root.clone());
        let all = overview::of(found, ctx.env);
        let rows: Vec<Row> = all.into_iter().map(|o| row(o, ctx)).collect();
        Self {
            folder: path_text(&root.unwrap_or_default()),
            agent: rows.iter().map(|r| r.agent.len()).max().unwrap_or(0),
            rows,
        }
    }

    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    pub(super) fn found(&self, at: usize) -> Option<&Found> {
        self.rows.get(at).map(|r| &r.found)
    }

    fn line(&self, [agent, age, turns, prompt]: [&str; 4], width: usize) -> String {
        let agent = pad(agent, self.agent.max("agent".len()));
        let line = if width < super::turns::NARROW {
            format!("{agent}  {prompt}")
        } else {
            format!("{agent}  {}  {turns:>5}  {prompt}", pad(age, 12))
        };
        fit(&line, width).into_owned()
    }
}

fn row(o: Overview, ctx: &Context<'_>) -> Row {
    let age = match (o.live, o.found.modified) {
        (Some(true), _) => "live".to_owned(),
        (_, Some(m)) => age(m, ctx.env.now),
        (_, None) => "?".to_owned(),
    };
    let first = o.found.card.prompt.as_deref().map(words::first_line);
    Row {
        agent: o.found.format.agent(),
        age,
        turns: o.turns.map_or("?".to_owned(), |n| n.to_string()),
        prompt: sanitise(first.unwrap_or_default()).into_owned(),
        found: o.found,
    }
}

impl Rows for SessionRows {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn words(&self, at: usize) -> String {
        let row = self.rows.get(at);
        row.map_or(String::new(), |r| {
            format!("{} {} {}", r.agent, r.found.card.id, r.prompt)
        })
    }

    fn heads(&self, width: usize) -> String {
        self.line(["agent", "age", "turns", "first prompt"], width)
    }

    fn row(&mut self, at: usize, width: usize) -> String {
        let row = self.rows.get(at);
        row.map_or(String::new(), |r| {
            self.line([r.agent, &r.age, &r.turns, &r.prompt], width)
        })
    }
}
