//! Budgets of a run: of its own, of a day, of an engine.

use herma_core::Blocker;
use herma_core::model_call::Ended;

use crate::kit::{ANSWERS, Herma, LONG_ANSWERS, MODEL, ROUTER, fix_and};

/// Asks over and over until the budget says no.
const GREEDY: &str = "- repeat: { times: 60, steps: [{ ask: { prompt: more, max_output: 1000 } }] }";

#[test]
fn a_run_never_costs_more_than_its_limits_and_is_blocked_for_trying() {
    for (limits, tokens, micro_usd) in
        [("{ tokens: 20k }", 20_000, u64::MAX), ("{ usd: 0.02 }", u64::MAX, 20_000)]
    {
        let herma = Herma::with_model(LONG_ANSWERS);
        let finished = herma.play(&fix_and(&[GREEDY]), &[MODEL, ("limits", limits)]);
        finished.assert_only(Blocker::BudgetExhausted);
        let usage = finished.report.usage;
        assert!(usage.charged_tokens <= tokens && usage.usd.0 <= micro_usd, "{usage:?}");
        assert!(usage.requests > 5, "{usage:?}");
        let refused = super::calls(&finished);
        let refused = refused.iter().filter(|call| call.reason.as_deref() == Some("budget_exhausted"));
        assert!(refused.clone().count() > 1);
        assert!(refused.clone().all(|call| call.status == 429 && call.ended == Ended::Refused));
    }
}

/// The cost of a picture is unknown before a call.
#[test]
fn a_provider_that_counts_more_than_could_be_set_aside_makes_no_pass() {
    let herma = Herma::with_model(&ANSWERS.replace("input: 7", "input: 4000"));
    let script = fix_and(&["- ask: { prompt: what now, max_output: 100, must: true }"]);
    let free = herma.play(&script, &[MODEL]);
    free.assert_pass();
    let charged = free.report.usage.charged_tokens;
    // All of it is set aside before the last call, and then one token is missing.
    let limits = format!("{{ tokens: {} }}", charged - 1);
    let finished = herma.play(&script, &[MODEL, ("limits", &limits)]);
    finished.assert_only(Blocker::BudgetExhausted);
    assert_eq!(finished.report.usage.charged_tokens, charged);
    let detail = &finished.report.blockers[0].detail;
    assert!(detail.starts_with(&format!("{charged} tokens were charged")), "{detail}");
}

#[test]
fn a_budget_that_does_not_let_the_model_be_asked_blocks_before_the_engine_starts() {
    let herma = Herma::with_model(ANSWERS);
    let finished = herma.play("fix", &[MODEL, ("limits", "{ tokens: 10 }")]);
    finished.assert_only(Blocker::BudgetExhausted);
    assert!(!finished.report.engine_started);
}

#[test]
fn the_budget_of_a_day_holds_over_several_runs() {
    for budget in ["day = { requests = 12 }", "engines.fake = { requests = 12 }"] {
        let herma = Herma::with_model(ANSWERS);
        herma.configure(&format!("{ROUTER}\n[budgets]\n{budget}\n"), ANSWERS);
        let mut requests = 0;
        let mut exhausted = false;
        for _ in 0..6 {
            let finished = herma.play(&fix_and(&["- ask: { prompt: hi }"]), &[MODEL]);
            requests += finished.report.usage.requests;
            exhausted = finished.report.blockers.iter().any(|b| b.blocker == Blocker::BudgetExhausted);
            if exhausted {
                break;
            }
        }
        assert!(exhausted, "{budget}: {requests} requests");
        assert!((6..=12).contains(&requests), "{budget}: {requests} requests");
    }
}
