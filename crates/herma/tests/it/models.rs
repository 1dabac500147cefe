//! Runs whose contract names a model: probe, reservation, call, settle, audit, bundle, on the real binary.

mod budgets;
mod commands;
mod gates;
mod killed;
mod secrets;

use herma_core::model_call::{Ended, ModelCall};
use herma_core::report::{Admission, Usage};
use herma_core::units::Usd;
use herma_core::{Blocker, EventType};
use herma_evidence::layout;

use crate::kit::{ANSWERS, Finished, Herma, MODEL, fix_and};

/// The calls that a run recorded.
fn calls(finished: &Finished) -> Vec<ModelCall> {
    let text = finished.bundle.text(layout::MODEL_CALLS);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Those that the engine made: what it asks comes after herma's own questions.
fn of_the_engine(finished: &Finished, count: usize) -> Vec<ModelCall> {
    let mut all = calls(finished);
    all.split_off(all.len() - count)
}

#[test]
fn a_run_with_a_model_passes_every_step() {
    let herma = Herma::with_model(ANSWERS);
    let finished = herma.play(
        &fix_and(&[
            "- ask: { prompt: what now, must: true }",
            "- ask: { prompt: and now, dialect: responses, stream: true, must: true }",
            "- ask: { prompt: and then, dialect: messages, model: coder, must: true }",
        ]),
        &[MODEL, ("limits", "{ tokens: 200k, usd: 2.00 }")],
    );
    finished.assert_pass();
    let report = &finished.report;
    assert_eq!(report.model_provider.as_deref(), Some("rehearsal"));
    assert_eq!(report.model.as_deref(), Some("m"));
    assert_eq!(report.model_runtime_provider.as_deref(), Some("scripted"));
    assert_eq!(report.model_admission, Admission::Admitted);

    let all = calls(&finished);
    let asked = of_the_engine(&finished, 3);
    assert!(all.len() > 3, "the model was asked before the engine started: {all:#?}");
    for call in &asked {
        assert_eq!((call.ended, call.status, call.settled), (Ended::Answered, 200, true), "{call:#?}");
        let used = call.used.unwrap();
        assert_eq!((used.input, used.output), (7, 5));
        assert_eq!(call.charged.micro_usd, 17, "7 tokens at $1 and 5 at $2 for a million");
        assert_eq!(call.attempts[0].upstream, "rehearsal");
    }
    assert_eq!(asked.iter().map(|call| call.asked.as_str()).collect::<Vec<_>>(), ["m", "m", "coder"]);
    assert!(asked[1].stream && !asked[0].stream);

    let count = all.len() as u64;
    let expected = Usage {
        requests: count,
        input_tokens: 7 * count,
        output_tokens: 5 * count,
        usd: Usd(17 * count),
        charged_tokens: 12 * count,
        unsettled: 0,
    };
    assert_eq!(report.usage, expected);
    let events = finished.bundle.events();
    let called = events.iter().filter(|event| event.kind == EventType::ModelCalled).count();
    assert_eq!(called, all.len());
    let said = finished.engine_said();
    assert_eq!(said.matches("the model answered with 200: I am ready.").count(), 3, "{said}");
}

#[test]
fn the_host_has_the_same_way() {
    let herma = Herma::with_model(ANSWERS);
    let script = fix_and(&["- ask: { prompt: what now, must: true }"]);
    herma.play(&script, &[MODEL, ("destination", "host")]).assert_pass();
}

#[test]
fn a_home_deeper_than_a_sockets_path_can_be_works_too() {
    for destination in ["host", "sandbox"] {
        let mut herma = Herma::new();
        let deep = herma.at(&["d".repeat(60), "e".repeat(60), "home".to_owned()].join("/"));
        std::fs::create_dir_all(deep.parent().unwrap()).unwrap();
        herma.set_home(&deep);
        herma.let_in("alice", None);
        herma.configure(crate::kit::ROUTER, ANSWERS);
        herma.admit_model("rehearsal/m", &[]);
        let script = fix_and(&["- ask: { prompt: what now, must: true }"]);
        herma.play(&script, &[MODEL, ("destination", destination)]).assert_pass();
    }
}

#[test]
fn without_a_model_there_is_no_way_and_no_record() {
    let herma = Herma::with_model(ANSWERS);
    let finished = herma.play(&fix_and(&["- ask: { prompt: what now }", "- shell: env"]), &[]);
    finished.assert_pass();
    assert_eq!(finished.report.not_applicable[layout::MODEL_CALLS], "the contract names no model");
    let said = finished.engine_said();
    assert!(said.contains("`ask` failed: there is no router") && !said.contains("HERMA_ROUTER"), "{said}");
}

#[test]
fn another_model_is_refused_and_blocks_whatever_becomes_of_the_work() {
    let herma = Herma::with_model(ANSWERS);
    let asked: Vec<String> = ["other", "M", "rehearsal/m", "m "]
        .iter()
        .map(|model| format!("- ask: {{ prompt: hi, model: '{model}', expect: 403, must: true }}"))
        .collect();
    let steps: Vec<&str> = asked.iter().map(String::as_str).collect();
    let finished = herma.play(&fix_and(&steps), &[MODEL]);
    finished.assert_only(Blocker::ModelMismatch);
    let detail = &finished.report.blockers[0].detail;
    assert_eq!(detail, "the engine asked for `other`, `M`, `rehearsal/m`, `m `");
    for call in of_the_engine(&finished, 4) {
        assert_eq!((call.ended, call.reason.as_deref()), (Ended::Refused, Some("model_mismatch")));
        assert!(call.attempts.is_empty(), "no upstream was asked: {call:#?}");
    }
}

#[test]
fn an_upstream_that_fails_falls_back_along_the_contracts_chain_only() {
    let script = "name: busy\nmatch: { marker: be busy }\nmodels: [m]\nturns: [{ error: 503 }]\n";
    let herma = Herma::with_model(ANSWERS);
    let router = crate::kit::ROUTER.replace(
        "[models.m]",
        "[upstreams.second]\nprovider = \"scripted\"\nscripts = [\"second.yaml\"]\n\n[models.m]",
    );
    let router = router.replace("\"answers.yaml\"", "\"busy.yaml\", \"answers.yaml\"");
    herma.configure(&router, ANSWERS);
    std::fs::write(herma.home().join("busy.yaml"), script).unwrap();
    std::fs::write(herma.home().join("second.yaml"), ANSWERS).unwrap();
    let ask = |expect: u16| format!("- ask: {{ prompt: be busy, expect: {expect}, must: true }}");
    let alone = herma.play(&fix_and(&[&ask(503)]), &[MODEL]);
    alone.assert_pass();
    herma.admit_model("second/small", &[]);
    let fallback = ("model", "{ provider: rehearsal, model: m, fallback: [second/small] }");
    let finished = herma.play(&fix_and(&[&ask(200)]), &[fallback]);
    finished.assert_pass();
    let call = &of_the_engine(&finished, 1)[0];
    let tried: Vec<(&str, &str)> =
        call.attempts.iter().map(|a| (a.upstream.as_str(), a.model.as_str())).collect();
    assert_eq!(tried, [("rehearsal", "m"), ("second", "small")]);
    // A fallback model cannot be called by itself.
    let direct = herma.play(&fix_and(&["- ask: { prompt: hi, model: small, expect: 403 }"]), &[fallback]);
    direct.assert_only(Blocker::ModelMismatch);
}

#[test]
fn a_model_for_side_work_is_asked_by_its_name() {
    let herma = Herma::with_model(ANSWERS);
    herma.admit_model("rehearsal/small", &[]);
    let model = ("model", "{ provider: rehearsal, model: m, auxiliary: [small] }");
    let finished = herma.play(&fix_and(&["- ask: { prompt: a title, model: small, must: true }"]), &[model]);
    finished.assert_pass();
    assert_eq!(of_the_engine(&finished, 1)[0].attempts[0].model, "small");
}
