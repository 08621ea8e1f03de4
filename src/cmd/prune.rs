//! `rewind prune`: what goes and what stays, each with its reason; then, after a yes, exactly that.

use std::fmt::Write as _;

use super::carry::may_ask;
use super::{Context, Outcome, sessions, undo};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::ops::config::Config;
use crate::ops::discover;
use crate::ops::journal::Journal;
use crate::ops::pins::Pins;
use crate::ops::prune::operations::{RootPlan, Stays};
use crate::ops::prune::remove::Done;
use crate::ops::prune::{
    self, Item, Keep, Plan, Policy, StorePlan, Verdict, Why, find, operations, removals, remove,
};
use crate::ui::json::{self, PathOut};
use crate::ui::text::{count, size};
use crate::ui::{path_text, sanitise};

/// Runs the command.
///
/// # Errors
/// A session or an agent that was named is not there; a no; the journals cannot be listed.
pub fn run(ctx: &mut Context<'_>, args: &cli::Prune) -> Result<Outcome> {
    may_ask(ctx, args.yes || args.dry_run)?;
    sessions::known(ctx, args.agent.as_deref())?;
    let policy = policy(ctx, args)?;
    let plan = plan(ctx, args, &policy)?;
    if args.dry_run || !plan.goes() {
        return tell(ctx, args, &policy, &plan);
    }
    if !args.yes {
        let text = text(&plan);
        ctx.print(&text)?;
        let freed = size(plan.freed());
        ctx.confirm(&format!("Remove this for good, and free {freed}?"))?;
    } else if !ctx.json() && !ctx.global.quiet {
        let text = text(&plan);
        ctx.print(&text)?;
    }
    let done = remove(ctx, &plan);
    report(ctx, &policy, &plan, &done)
}

fn policy(ctx: &mut Context<'_>, args: &cli::Prune) -> Result<Policy> {
    let config = Config::read(ctx.env);
    if let Some(fault) = &config.fault {
        // The defaults may remove what the user's own settings would keep.
        return Err(Error::new(
            Kind::Failed,
            "the config cannot be read, and it may say what is to be kept",
        )
        .path(&fault.path, fault.why.clone())
        .hint("`rewind doctor` shows what is in force"));
    }
    let before = args
        .older_than
        .unwrap_or(config.older_than)
        .before(ctx.env.now);
    if before > ctx.env.now {
        return Err(Error::new(
            Kind::Usage,
            "`--older-than` names a time that is still to come",
        ));
    }
    let pins = Pins::read(ctx.env);
    let keep = args
        .keep
        .iter()
        .filter(|k| !pins.is_name(k))
        .cloned()
        .collect();
    Ok(Policy {
        before,
        keep_last: args.keep_last.unwrap_or(config.keep_last),
        max_size: args.max_size.or(config.max_size),
        orphans: args.orphans,
        keep,
    })
}

fn plan(ctx: &mut Context<'_>, args: &cli::Prune, policy: &Policy) -> Result<Plan> {
    let progress = ctx.ui.progress("looking at what there is", None);
    let agent = args.agent.as_deref();
    let everywhere = ctx.global.session.is_none() && (args.all || args.orphans);
    let all = everywhere.then(|| discover::all(ctx.env, None));
    let of = |f: &discover::Found| agent.is_none_or(|a| f.format.agent() == a);
    let found = match (&ctx.global.session, args.all, &all) {
        (Some(name), ..) => vec![discover::pick(ctx.env, Some(name), None)?],
        (None, true, Some(all)) => all.iter().filter(|f| of(f)).cloned().collect(),
        _ => match &ctx.global.workspace {
            Some(folder) => discover::of_workspace(ctx.env, &ctx.env.cwd.join(folder), agent),
            None => discover::here(ctx.env, agent),
        },
    };
    for name in &policy.keep {
        if !found.iter().any(|f| f.card.id.starts_with(name)) {
            return Err(Error::new(
                Kind::NotFound,
                format!("`--keep {name}` names no session and no pin"),
            )
            .hint("`rewind sessions --all` lists the sessions"));
        }
    }
    let mut stores = find::of_sessions(found, ctx.env);
    if let Some(all) = all.filter(|_| agent.is_none()) {
        stores.extend(find::orphans(&all, ctx.env));
    }
    let mut plan = prune::plan(&stores, policy, ctx.env);
    if args.journal {
        plan.operations = operations::plan(journals(ctx, args.all)?, policy, ctx.env);
    }
    drop(progress);
    Ok(plan)
}

/// The journals of this folder, or all.
///
/// # Errors
/// They cannot be listed.
pub fn journals(ctx: &Context<'_>, all: bool) -> Result<Vec<Journal>> {
    let Some(state) = &ctx.env.state else {
        return Ok(Vec::new());
    };
    if all {
        return Journal::all(state)
            .map_err(|e| Error::io("the journals cannot be listed", state.join("roots"), e));
    }
    let root = undo::root(ctx)?;
    let journal = Journal::open(ctx.env.state.as_deref(), &root)?;
    Ok(if journal.folder().is_dir() {
        vec![journal]
    } else {
        Vec::new()
    })
}

fn remove(ctx: &mut Context<'_>, plan: &Plan) -> Done {
    let total = plan.stores.iter().filter(|s| s.goes()).count();
    let progress = ctx.ui.progress("pruning", u64::try_from(total).ok());
    let mut done = remove::stores(plan, ctx.env, ctx.disk, &|n| progress.at(n));
    operations::remove(&plan.operations, ctx.env, ctx.disk, &mut done);
    drop(progress);
    if let Some(state) = &ctx.env.state
        && let Err(e) = removals::append(state, ctx.disk, &done.removals)
    {
        let path = state.join(removals::FILE);
        done.left.push((
            path,
            format!("what was removed could not be written down: {e}"),
        ));
    }
    done
}

fn tell(ctx: &mut Context<'_>, args: &cli::Prune, policy: &Policy, plan: &Plan) -> Result<Outcome> {
    if ctx.json() {
        let status = if plan.goes() { "planned" } else { "unchanged" };
        ctx.print_json(&out(plan, policy, (status, plan.freed()), &Done::default()))?;
        return Ok(Outcome::Done);
    }
    if args.dry_run || !ctx.global.quiet {
        let text = text(plan);
        ctx.print(&text)?;
    }
    if plan.goes() {
        ctx.ui.say(&format!("would remove {}", sum(plan)));
    } else {
        ctx.ui.say("nothing to prune");
    }
    Ok(Outcome::Done)
}

fn report(ctx: &mut Context<'_>, policy: &Policy, plan: &Plan, done: &Done) -> Result<Outcome> {
    let outcome = if done.left.is_empty() {
        Outcome::Done
    } else {
        Outcome::Partial
    };
    if ctx.json() {
        let status = if done.left.is_empty() {
            "done"
        } else {
            "partial"
        };
        ctx.print_json(&out(plan, policy, (status, done.freed()), done))?;
        return Ok(outcome);
    }
    for (path, why) in &done.left {
        ctx.ui
            .warn(&format!("left: {}: {}", path_text(path), sanitise(why)));
    }
    let what: usize = done.removals.iter().map(|r| r.what.len()).sum();
    let n = count(
        what,
        "checkpoint or operation",
        "checkpoints and operations",
    );
    ctx.ui
        .say(&format!("removed {n}, freed {}", size(done.freed())));
    Ok(outcome)
}

fn sum(plan: &Plan) -> String {
    let checkpoints = plan
        .stores
        .iter()
        .flat_map(|s| &s.items)
        .filter(|i| i.verdict.goes())
        .count();
    let operations = plan
        .operations
        .iter()
        .flat_map(|o| &o.items)
        .filter(|i| i.stays.is_none())
        .count();
    let words = number(checkpoints, operations);
    format!("{words}, and free {}", size(plan.freed()))
}

fn number(checkpoints: usize, operations: usize) -> String {
    let mut words = count(checkpoints, "checkpoint", "checkpoints");
    if operations > 0 {
        words.push_str(" and what ");
        words.push_str(&count(operations, "rewind", "rewinds"));
        words.push_str(" replaced");
    }
    words
}

/// Rows of neighbours with one fate and one reason are one line.
fn text(plan: &Plan) -> String {
    let mut text = String::new();
    for store in &plan.stores {
        text.push_str(&head(store));
        for (first, last, n, item) in rows(&store.items) {
            let which = if n == 1 {
                format!("checkpoint {first}")
            } else {
                format!("checkpoints {first} to {last} ({n})")
            };
            let (verdict, reason) = verdict(&item.verdict);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {verdict:<10} {which}: {reason}");
        }
        if let Some(fault) = &store.fault {
            let _ = writeln!(
                text,
                "  keep       all of it: it cannot be looked at: {}",
                sanitise(fault)
            );
        }
        if store.whole {
            text.push_str("  remove     the folder itself\n");
        }
    }
    for root in plan.operations.iter().filter(|r| !r.items.is_empty()) {
        let _ = writeln!(text, "what rewinds replaced in {}", path_text(&root.root));
        for item in &root.items {
            let (verdict, reason) = stays(item.stays);
            let _ = writeln!(text, "  {verdict:<10} {}: {reason}", sanitise(&item.id));
        }
    }
    text
}

fn head(store: &StorePlan) -> String {
    let path = path_text(&store.store.folder);
    match &store.store.session {
        Some(found) => format!("{path}  ({})\n", found.format.title()),
        None => format!("{path}  (its session is gone)\n"),
    }
}

fn rows(items: &[Item]) -> Vec<(u32, u32, usize, &Item)> {
    let mut rows: Vec<(u32, u32, usize, &Item)> = Vec::new();
    for item in items {
        match rows.last_mut() {
            Some((_, last, n, like)) if like.verdict == item.verdict => {
                (*last, *n) = (item.turn, *n + 1);
            }
            _ => rows.push((item.turn, item.turn, 1, item)),
        }
    }
    rows
}

fn verdict(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::Keep(why) => ("keep", kept(why)),
        Verdict::Remove(why) => ("remove", gone(*why).to_owned()),
        Verdict::Quarantine(why) => (
            "quarantine",
            format!("{}, and it cannot be read", gone(*why)),
        ),
    }
}

fn gone(why: Why) -> &'static str {
    match why {
        Why::Old => "older than the limit",
        Why::Size => "the oldest, and all together are too large",
        Why::Begun => "an earlier prune was interrupted at it",
    }
}

fn kept(why: &Keep) -> String {
    match why {
        Keep::Young => "younger than the limit".to_owned(),
        Keep::Future => "its time is still to come, so the clock is not to be trusted".to_owned(),
        Keep::Newest => "among the newest of its session".to_owned(),
        Keep::Open => "its turn is going on".to_owned(),
        Keep::Pinned(None) => "pinned".to_owned(),
        Keep::Pinned(Some(name)) => format!("pinned as `{}`", sanitise(name)),
        Keep::Operation(id) => format!("operation {} went there", sanitise(id)),
        Keep::NeededBy(turn) => format!("checkpoint {turn} stays and needs it"),
        Keep::Live(sign) => format!("an agent is at work on the session: {}", sanitise(sign)),
        Keep::Orphan => "its session is gone; `--orphans` removes such ones".to_owned(),
        Keep::Named => "`--keep` names its session".to_owned(),
        Keep::Odd(why) => sanitise(why).into_owned(),
    }
}

fn stays(why: Option<Stays>) -> (&'static str, &'static str) {
    match why {
        None => (
            "remove",
            "older than the limit; it cannot be undone any more then",
        ),
        Some(Stays::Young) => ("keep", "younger than the limit"),
        Some(Stays::Newest) => ("keep", "the newest that can be undone"),
        Some(Stays::Behind) => ("keep", "an earlier one stays"),
        Some(Stays::Open) => (
            "keep",
            "an operation is open here; the next command settles it",
        ),
    }
}

fn out(
    plan: &Plan,
    policy: &Policy,
    (status, freed): (&'static str, u64),
    done: &Done,
) -> json::Prune {
    json::Prune {
        schema: "rewind.prune/1",
        status,
        before: json::time(policy.before),
        freed,
        stores: plan.stores.iter().map(store_out).collect(),
        journals: plan.operations.iter().map(journal_out).collect(),
        left: done
            .left
            .iter()
            .map(|(path, why)| json::LeftOut {
                path: PathOut::new(path),
                why: why.clone(),
            })
            .collect(),
    }
}

fn store_out(plan: &StorePlan) -> json::StoreOut {
    let session = plan.store.session.as_ref();
    let item = |item: &Item| {
        let (word, reason) = verdict(&item.verdict);
        json::ItemOut {
            checkpoint: item.turn,
            modified: item.modified.map(json::time),
            verdict: word,
            reason,
        }
    };
    json::StoreOut {
        path: PathOut::new(&plan.store.folder),
        agent: session.map(|s| s.format.agent().to_owned()),
        session: session.map(|s| s.card.id.clone()),
        whole: plan.whole,
        freed: plan.freed,
        fault: plan.fault.clone(),
        checkpoints: plan.items.iter().map(item).collect(),
    }
}

fn journal_out(plan: &RootPlan) -> json::JournalOut {
    let item = |item: &operations::Item| {
        let (verdict, reason) = stays(item.stays);
        json::OperationOut {
            operation: item.id.clone(),
            at: item.at.clone(),
            verdict,
            reason: reason.to_owned(),
        }
    };
    json::JournalOut {
        root: PathOut::new(&plan.root),
        freed: plan.freed,
        fault: plan.fault.clone(),
        operations: plan.items.iter().map(item).collect(),
    }
}
