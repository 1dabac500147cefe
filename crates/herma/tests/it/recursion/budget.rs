//! The spending of a child and all below it counts against every run above it.

use herma_core::budget::Amount;
use herma_core::report::ChildrenUse;
use herma_core::{Blocker, EventType, Report, Status, Step};
use serde_json::json;

use super::{ASK, args, asking, family, refusals, said};
use crate::crash::assert_closed;
use crate::kit::{ANSWERS, Bundle, Herma, LONG_ANSWERS, MODEL, ROUTER, contract_text, fix_and, until};

/// Asks over and over until the budget says no.
const GREEDY: &str = "- repeat: { times: 80, steps: [{ ask: { prompt: more, max_output: 1000 } }] }";

/// The contract of a child that asks the model within these limits.
fn child(id: &str, limits: &str) -> String {
    contract_text(&[("id", id), ("target", "{ repo: . }"), MODEL, ("limits", limits)])
}

fn charged(report: &Report) -> Amount {
    let usage = report.usage;
    Amount { micro_usd: usage.usd.0, requests: usage.requests, tokens: usage.charged_tokens }
}

fn below(report: &Report) -> Amount {
    report.children.map(|children| children.charged()).unwrap_or_default()
}

#[test]
fn a_childs_spending_is_in_its_parents_report_apart_from_its_own() {
    let herma = Herma::with_model(ANSWERS);
    let script = asking(
        &child("the-child", "{ total: 30s, idle: 30s, tokens: 100k, usd: 1.00 }"),
        &fix_and(&["- ask: { prompt: what now, must: true }", "- ask: { prompt: and now, must: true }"]),
        &["- ask: { prompt: what now, must: true }", &format!("- shell: {{ command: {ASK}, must: true }}")],
    );
    let (ended, bundles) =
        family(&herma, &script, &[MODEL, ("limits", "{ total: 50s, idle: 10s, tokens: 200k, usd: 2.00 }")]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let [above, below] = &bundles[..] else { panic!("{ended:#?}") };
    let (parent, child) = (above.report(), below.report());
    assert!(child.usage.requests > parent.usage.requests, "{child:#?}");
    let expected = ChildrenUse {
        runs: 1,
        requests: child.usage.requests,
        charged_tokens: child.usage.charged_tokens,
        usd: child.usage.usd,
        unknown: 0,
    };
    assert_eq!((parent.children, child.children), (Some(expected), None));
    let ends: Vec<_> = above.events().into_iter().filter(|e| e.kind == EventType::ChildEnded).collect();
    let [end] = &ends[..] else { panic!("{ends:#?}") };
    let end = json!(end.data);
    assert_eq!(end, json!({ "child": child.run_id, "status": "pass", "charged": charged(&child) }));
    // Each run's calls are counted once.
    let usage = herma.json(&["usage", "--json"]);
    let requests = |kind: &str| usage["total"][kind]["requests"].as_u64().unwrap();
    let both = parent.usage.requests + child.usage.requests;
    assert_eq!(requests("usage") + requests("probes"), both, "{usage:#}");
    let shown = herma.run(&["show", "--full", &parent.run_id.to_string()]).stdout;
    assert!(shown.contains(&format!("| child runs | 1; {} model calls", child.usage.requests)), "{shown}");
}

#[test]
fn a_run_and_all_below_it_never_spend_more_than_its_budget() {
    for (limits, tokens, micro_usd) in [("tokens: 40k", 40_000, u64::MAX), ("usd: 0.05", u64::MAX, 50_000)] {
        let herma = Herma::with_model(LONG_ANSWERS);
        let lowest = child("lowest", &format!("{{ total: 60s, idle: 60s, {limits} }}"));
        let middle = child("middle", &format!("{{ total: 120s, idle: 120s, {limits} }}"));
        let script = asking(
            &middle,
            &asking(&lowest, &fix_and(&[GREEDY]), &[&format!("- shell: {ASK}")]),
            &[&format!("- shell: {ASK}"), "- ask: { prompt: me too, max_output: 1000 }"],
        );
        let own = format!("{{ total: 180s, idle: 60s, {limits} }}");
        let (ended, bundles) = family(&herma, &script, &[MODEL, ("limits", &own)]);
        let reports: Vec<Report> = bundles.iter().map(Bundle::report).collect();
        let [top, middle, lowest] = &reports[..] else { panic!("{ended:#?}\n{}", said(&bundles[0])) };
        assert_eq!(below(lowest), Amount::default());
        assert_eq!(below(middle), charged(lowest));
        assert_eq!(below(top), charged(middle).plus(charged(lowest)));
        let all = charged(top).plus(below(top));
        assert!(all.tokens <= tokens && all.micro_usd <= micro_usd, "{all:?}");
        // It is the budget of the runs above that was used up: of its own the lowest had enough left for a call.
        let blocked = lowest.blockers.iter().find(|b| b.blocker == Blocker::BudgetExhausted).unwrap();
        let above = [top, middle].map(|run| format!("the budget of run {}", run.run_id));
        assert!(above.iter().any(|above| blocked.detail.contains(above)), "{blocked:?}");
        assert!(said(&bundles[2]).contains("a parent run of this one"), "{}", said(&bundles[2]));
        let refused = top.blockers.iter().map(|b| b.blocker).collect::<Vec<_>>();
        assert!(refused.contains(&Blocker::BudgetExhausted), "{refused:?}");
    }
}

#[test]
fn a_parent_that_asks_while_its_child_does_shares_one_budget_with_it() {
    let herma = Herma::with_model(LONG_ANSWERS);
    let limits = "{ total: 60s, idle: 60s, tokens: 60k }";
    let script = asking(
        &child("the-child", "{ total: 50s, idle: 50s, tokens: 60k }"),
        &fix_and(&[GREEDY]),
        &[&format!("- daemon: {ASK}"), "- sleep: 1s", GREEDY, GREEDY],
    );
    let (ended, bundles) = family(&herma, &script, &[MODEL, ("limits", limits)]);
    let [parent, child] = &bundles[..] else { panic!("{ended:#?}") };
    let (parent, child) = (parent.report(), child.report());
    assert_eq!(below(&parent), charged(&child));
    let all = charged(&parent).plus(below(&parent)).tokens;
    assert!(all <= 60_000, "{all}");
    // Those that were cut off have used up their reservation.
    assert!(all > 50_000, "{parent:#?}\n{child:#?}");
    assert!(parent.blockers.iter().any(|b| b.blocker == Blocker::BudgetExhausted), "{parent:#?}");
}

#[test]
fn a_child_that_asks_a_model_has_to_say_how_much_of_its_parents_budget_it_may_use() {
    let herma = Herma::with_model(ANSWERS);
    for (limits, named) in
        [("", "`limits.tokens` is not set"), (", tokens: 101k", "above its parent's 100000")]
    {
        let contract = child("the-child", &format!("{{ total: 30s, idle: 30s{limits} }}"));
        let script = asking(&contract, &fix_and(&[]), &[&format!("- shell: {ASK}; echo code $?")]);
        let finished = herma.play(&script, &[MODEL, ("limits", "{ total: 50s, idle: 10s, tokens: 100k }")]);
        assert!(finished.engine_said().contains("code 3"), "{}", finished.engine_said());
        let refused = refusals(&finished.bundle);
        assert!(refused.len() == 1 && refused[0].contains(named), "{refused:?}");
        assert_eq!(finished.report.children, None);
    }
}

/// An upstream that lets one question wait.
const SLOW: &str =
    "name: slow\nmatch: { marker: take your time }\nmodels: [m]\nturns: [{ say: so, delay: 600s }]\n";

#[test]
fn a_child_that_is_killed_in_the_middle_of_a_call_is_charged_at_the_most_in_its_parents_report() {
    let herma = Herma::with_model(ANSWERS);
    herma.configure(&ROUTER.replace("\"answers.yaml\"", "\"slow.yaml\", \"answers.yaml\""), ANSWERS);
    std::fs::write(herma.home().join("slow.yaml"), SLOW).unwrap();
    let script = asking(
        &child("the-child", "{ total: 100s, idle: 100s, tokens: 50k }"),
        &fix_and(&["- ask: { prompt: take your time, max_output: 500 }"]),
        &[&format!("- shell: {ASK}")],
    );
    let limits = ("limits", "{ total: 120s, idle: 120s, tokens: 100k }");
    let mut started = herma.start(&args(&herma, &script, &[MODEL, limits]));
    until("the child's call is under way", || {
        assert!(started.is_alive(), "{}\n{}", started.stdout_so_far(), started.stderr_so_far());
        let [_, child] = herma.runs()[..] else { return false };
        let dir = herma.home().join("runs").join(child.to_string());
        let lines = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default().lines().count();
        let counted = || (lines("router/calls-begun"), lines("router/model-calls.jsonl"));
        let (begun, ended) = counted();
        if !herma.said(child, "engine.started") || begun != ended + 1 {
            return false;
        }
        // A call that has ended is on record a moment later: only the slow one stays open.
        std::thread::sleep(std::time::Duration::from_millis(300));
        counted() == (begun, ended)
    });
    let runs = herma.runs();
    assert!(started.kill().was_killed());
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    for run in &runs {
        assert_closed(&herma, *run, Step::Engine);
    }
    let (parent, child) = (herma.bundle(runs[0]).report(), herma.bundle(runs[1]).report());
    assert_eq!((child.status, child.usage.unsettled), (Status::Blocked, 1), "{child:#?}");
    assert!(child.usage.charged_tokens >= 500, "{child:#?}");
    assert_eq!(below(&parent), charged(&child), "{parent:#?}");
    let children = parent.children.unwrap();
    assert_eq!((children.runs, children.unknown), (1, 0));
}
