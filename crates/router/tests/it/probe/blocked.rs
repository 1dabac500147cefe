//! Probes that cannot find out anything, and what a run is then blocked by.

use herma_core::Blocker;
use herma_core::secret::Secret;
use herma_dialect::endpoint::Endpoint;
use herma_router::budget::Limits;
use herma_router::config::Address;
use herma_router::probe::{ProbeFailed, probe};

use super::kit::{BUDGET, ENDPOINTS, GOOD, Routed, SHORT, Turns, probed};

#[test]
fn a_provider_that_fails_is_unavailable() {
    let turns = [
        ("{ error: 401 }", "status 502: the upstream `script` refused the router's key"),
        ("{ error: 403 }", "status 502"),
        ("{ error: { status: 429, message: Too many. } }", "status 429: Too many."),
        ("{ error: 500 }", "status 500"),
        ("{ error: 503 }", "status 503"),
        ("{ error: { status: 404, message: No such model. } }", "status 404: No such model."),
        ("{ error: { status: 400, message: Bad. } }", "status 400: Bad."),
        ("{ say: ready, malformed: true }", "not one of this API"),
        ("{ say: ready, cut: { after_bytes: 20 } }", "broke off"),
        ("{ say: ready, cut: { after_bytes: 0 } }", ""),
    ];
    for (content, part) in turns {
        for endpoint in ENDPOINTS {
            let failed = probed(Turns { content, ..GOOD }, endpoint).unwrap_err();
            assert_eq!(failed.blocker(), Blocker::ProviderUnavailable, "{endpoint:?} {content}");
            assert!(failed.record().next_step.contains("the key of the model's upstream"), "{failed}");
            let (at, why, taken) = match &failed {
                ProbeFailed::Unavailable { endpoint, why } => (*endpoint, why, true),
                ProbeFailed::NotTaken { endpoint, why } => (*endpoint, why, false),
                failed => panic!("{content}: {failed}"),
            };
            assert!(at == endpoint && why.contains(part), "{endpoint:?} {content}: {why}");
            assert_eq!(taken, !part.contains("404") && !part.contains("400"), "{content}: {failed}");
        }
    }
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    for content in
        ["{ say: ready, delay: 20s }", "{ say: ready, forever: silence }", "{ say: ready, forever: text }"]
    {
        for endpoint in ENDPOINTS {
            let routed = Routed::new(Turns { content, ..GOOD });
            let failed = probe(&routed.address, &routed.token, "m", &ENDPOINTS, SHORT).unwrap_err();
            assert!(failed.to_string().contains("in time"), "{endpoint:?} {content}: {failed}");
            let sums = routed.handle.revoke("probe").unwrap().unwrap().sums;
            assert_eq!(sums.records, 1, "a provider that does not answer is not asked again");
        }
    }
}

#[test]
fn a_refusal_of_the_router_is_no_property_of_the_model() {
    for endpoint in ENDPOINTS {
        let routed = Routed::new(GOOD);
        let ask = |token: &str, model| {
            probe(&routed.address, &Secret::new(token.to_owned()), model, &[endpoint], BUDGET).unwrap_err()
        };
        let failed = ask("another-token", "m");
        assert!(matches!(failed, ProbeFailed::Refused { status: 401, .. }), "{failed}");
        assert_eq!(failed.blocker(), Blocker::ProviderUnavailable);
        assert!(!failed.to_string().contains("another-token"));
        let failed = ask(routed.token.expose(), "another");
        assert!(matches!(failed, ProbeFailed::Refused { status: 403, .. }), "{failed}");
        assert_eq!(failed.blocker(), Blocker::ModelNotAdmitted);
        assert!(ask("bad\ntoken", "m").to_string().contains("cannot be sent"));
    }
}

#[test]
fn a_budget_that_is_spent_is_named_as_such() {
    for endpoint in ENDPOINTS {
        for (requests, tokens) in [(Some(0), None), (Some(1), None), (None, Some(10))] {
            let limits = Limits { requests, tokens, micro_usd: None };
            let failed = Routed::bounded(GOOD, limits, 4096).probe(&[endpoint]).unwrap_err();
            assert!(matches!(failed, ProbeFailed::Refused { status: 429, .. }), "{failed}");
            assert_eq!(failed.blocker(), Blocker::BudgetExhausted);
        }
    }
}

#[test]
fn a_model_that_got_too_little_is_not_said_to_reason_only() {
    let turns = Turns { content: "{ think: It takes me quite some words to get to the point. }", ..GOOD };
    for endpoint in ENDPOINTS {
        let failed = Routed::bounded(turns, Limits::default(), 100).probe(&[endpoint]).unwrap_err();
        assert_eq!(failed, ProbeFailed::TooLittleOutput { allowed: 100, asked: 1024 }, "{endpoint:?}");
        assert_eq!(failed.blocker(), Blocker::BudgetExhausted);
        let good = Routed::bounded(GOOD, Limits::default(), 100).probe(&[endpoint]).unwrap();
        assert_eq!(good.blocker(), None, "content is content");
    }
}

#[test]
fn no_router_and_no_api() {
    let token = Secret::new("token".to_owned());
    let nowhere = Address::Unix("/nowhere/router.sock".into());
    let failed = probe(&nowhere, &token, "m", &[Endpoint::Chat], BUDGET).unwrap_err();
    assert!(failed.to_string().contains("nobody listens"), "{failed}");
    assert_eq!(failed.blocker(), Blocker::ProviderUnavailable);
    let failed = probe(&nowhere, &token, "m", &[Endpoint::Embeddings], BUDGET).unwrap_err();
    assert_eq!(failed, ProbeFailed::NoDoor);
}
