//! The gates of a contract that names a model: admitted, configured, and answering with content.

use herma_core::report::Admission;
use herma_core::{Blocker, EventType};
use herma_evidence::layout;

use crate::kit::{ANSWERS, Finished, Herma, MODEL, ROUTER};

/// A run that a gate blocked before the engine started.
fn blocked(herma: &Herma, terms: &[(&str, &str)]) -> Finished {
    let finished = herma.play("fix", terms);
    assert!(!finished.report.engine_started, "{:#?}", finished.report);
    assert!(finished.bundle.has_event(EventType::EngineGateBlocked));
    finished
}

fn details(finished: &Finished) -> String {
    let details: Vec<String> =
        finished.report.blockers.iter().map(|b| format!("{}: {}", b.blocker, b.detail)).collect();
    details.join("\n")
}

#[test]
fn missing_configuration_is_reported_and_no_model_is_called() {
    let herma = Herma::with_model(ANSWERS);
    let with = |from: &str, to: &str| ROUTER.replace(from, to);
    let cases = [
        (
            with("upstreams.rehearsal", "upstreams.elsewhere").replace("rehearsal/", "elsewhere/"),
            "no upstream",
        ),
        (with("state = ", "sate = "), "unknown key `sate`; did you mean `state`?"),
        (with("answers.yaml", "gone.yaml"), "router.toml: "),
    ];
    for (router, said) in cases {
        herma.configure(&router, ANSWERS);
        let finished = blocked(&herma, &[MODEL]);
        finished.assert_only(Blocker::ProviderUnavailable);
        assert!(details(&finished).contains(said), "{said}: {}", details(&finished));
        assert!(!details(&finished).contains(herma.home().to_str().unwrap()), "the home is nobody's affair");
        assert!(finished.report.not_applicable.contains_key(layout::MODEL_CALLS));
    }
    std::fs::remove_file(herma.home().join("router.toml")).unwrap();
    let finished = blocked(&herma, &[MODEL]);
    finished.assert_only(Blocker::ProviderUnavailable);
    assert!(details(&finished).contains("there is no router.toml"), "{}", details(&finished));
}

#[test]
fn a_budget_in_dollars_needs_a_price() {
    let herma = Herma::with_model(ANSWERS);
    let without = ROUTER.split("[prices]").next().unwrap();
    herma.configure(without, ANSWERS);
    let finished = blocked(&herma, &[MODEL, ("limits", "{ usd: 2.00 }")]);
    finished.assert_only(Blocker::ProviderUnavailable);
    assert!(details(&finished).contains("no price of `rehearsal/m`"), "{}", details(&finished));
    let next_step = &finished.report.blockers[0].next_step;
    assert!(next_step.starts_with("Add `prices.\"rehearsal/m\" = "), "{next_step}");
    herma.play("fix", &[MODEL]).assert_pass();
}

#[test]
fn the_key_of_an_upstream_must_be_there_and_those_of_others_need_not() {
    let herma = Herma::with_model(ANSWERS);
    let other = "\n[upstreams.openai]\nprovider = \"openai\"\nkey = { env = \"NOT_SET_ANYWHERE\" }\n";
    herma.configure(&format!("{ROUTER}{other}"), ANSWERS);
    herma.play("fix", &[MODEL]).assert_pass();
    let elsewhere = herma.at("elsewhere/of-openai.key");
    let in_a_file =
        other.replace("env = \"NOT_SET_ANYWHERE\"", &format!("file = \"{}\"", elsewhere.display()));
    herma.configure(&format!("{ROUTER}{in_a_file}"), ANSWERS);
    herma.admit_model("openai/gpt-4", &["--credential-source", "file"]);
    let finished = blocked(&herma, &[("model", "{ provider: openai, model: gpt-4 }")]);
    finished.assert_only(Blocker::ProviderUnavailable);
    assert!(details(&finished).contains("of-openai.key"), "{}", details(&finished));
    assert!(!details(&finished).contains("elsewhere"), "its path must not be shown");
    herma.configure(&format!("{ROUTER}{other}"), ANSWERS);
    herma.admit_model("openai/gpt-5", &["--credential-source", "environment"]);
    let finished = blocked(&herma, &[("model", "{ provider: openai, model: gpt-5 }")]);
    finished.assert_only(Blocker::ProviderUnavailable);
    assert!(details(&finished).contains("NOT_SET_ANYWHERE"), "{}", details(&finished));
}

#[test]
fn every_model_that_the_contract_names_must_be_admitted() {
    let herma = Herma::with_model(ANSWERS);
    for model in [
        "{ provider: rehearsal, model: small }",
        "{ provider: rehearsal, model: m, fallback: [rehearsal/small] }",
        "{ provider: rehearsal, model: m, auxiliary: [small] }",
    ] {
        let finished = blocked(&herma, &[("model", model)]);
        finished.assert_only(Blocker::ModelNotAdmitted);
        assert_eq!(finished.report.model_admission, Admission::MissingAdmission);
        assert!(details(&finished).contains("rehearsal/small"), "{}", details(&finished));
    }
}

#[test]
fn the_configuration_must_match_the_admission() {
    let herma = Herma::with_model(ANSWERS);
    herma.configure(&ROUTER.replace("rehearsal", "anthropic"), ANSWERS);
    herma.admit_model("anthropic/m", &[]);
    let contract = [("model", "{ provider: anthropic, model: m }")];
    let finished = blocked(&herma, &contract);
    finished.assert_only(Blocker::ModelNotAdmitted);
    assert_eq!(finished.report.model_admission, Admission::Mismatch);
    assert!(details(&finished).contains("router.toml has `scripted` there"), "{}", details(&finished));
    // A person can say that a bridge speaks for the provider.
    let revoke = ["admissions", "revoke", "model", "anthropic/m", "--reason", "a bridge"];
    assert_eq!(herma.run(&revoke).code, Some(0));
    herma.admit_model("anthropic/m", &["--runtime-provider", "scripted"]);
    let finished = herma.play("fix", &contract);
    finished.assert_pass();
    assert_eq!(finished.report.model_provider.as_deref(), Some("anthropic"));
    assert_eq!(finished.report.model_runtime_provider.as_deref(), Some("scripted"));
    // Another kind of credential than the admitted one is another way to the model.
    herma.admit_model("rehearsal/other", &["--credential-source", "keychain"]);
    herma.configure(ROUTER, ANSWERS);
    let finished = blocked(&herma, &[("model", "{ provider: rehearsal, model: other }")]);
    finished.assert_only(Blocker::ModelNotAdmitted);
    assert!(details(&finished).contains("a credential from `keychain`"), "{}", details(&finished));
}

#[test]
fn a_model_that_only_reasons_or_does_not_answer_blocks_before_the_engine_starts() {
    let cases = [
        ("turns: [{ think: hmm }]\nrepeat: true\n", Blocker::ProviderReasoningOnly),
        ("turns: [{ error: 500 }]\nrepeat: true\n", Blocker::ProviderUnavailable),
        ("turns: [{ error: 401 }]\nrepeat: true\n", Blocker::ProviderUnavailable),
        ("turns: [{ empty: true }]\nrepeat: true\n", Blocker::ProviderUnavailable),
    ];
    for (turns, blocker) in cases {
        let herma = Herma::with_model(&format!("name: bad\nmodels: [m]\n{turns}"));
        let finished = blocked(&herma, &[MODEL]);
        finished.assert_only(blocker);
        assert!(!super::calls(&finished).is_empty(), "what was asked is in the evidence");
        assert!(finished.report.usage.requests > 0);
    }
}

#[test]
fn stage_1_asks_the_model_and_starts_nothing() {
    let herma = Herma::with_model(ANSWERS);
    let finished = herma.play("fix", &[MODEL, ("stage", "1")]);
    finished.assert_pass();
    assert!(!finished.report.engine_started);
    assert!(!super::calls(&finished).is_empty());
}
