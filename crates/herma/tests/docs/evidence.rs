//! The parts of `docs/evidence.md` that the code says: files, report, events, gates, checks.

use herma_core::EventType;
use herma_core::gate::Gate;
use herma_evidence::layout;
use herma_evidence::verify::{FIELDS, FieldCheck, Reach};

use crate::generated::{head, row};
use crate::schema::{Key, Schema};

/// The meaning of each file of a bundle.
const FILES: &[(&str, &str)] = &[
    (layout::REPORT, "the report, for programs; [schema](schemas/report.json)"),
    (layout::REPORT_MD, "the same report, for people"),
    (
        layout::EVENTS,
        "what happened, one event a line, each naming the digest of the line before; [schema](schemas/event.json)",
    ),
    (layout::TRACE, "the steps, one a line, each written before it was taken; [schema](schemas/trace.json)"),
    (
        layout::DECISION,
        "the eligibility decision: every gate and what came of it; [schema](schemas/decision.json)",
    ),
    (layout::CONTRACT, "the contract, byte for byte as it was given"),
    (
        layout::CONFINEMENT,
        "what the probes tried from inside the destination, and what stopped them; [schema](schemas/confinement.json)",
    ),
    (layout::PATCH, "what the engine changed, as a git patch with full blob names"),
    (layout::TEST_LOG, "what the verification commands printed, secrets redacted"),
    (
        layout::ENVIRONMENT,
        "how the environment was built, and what the verification commands did on the base; only where the contract has an environment; [schema](schemas/environment.json)",
    ),
    (
        layout::TRANSCRIPT,
        "what the agent said and did, in one form for every engine, secrets redacted; only where an engine was started; [schema](schemas/transcript.json)",
    ),
    (layout::ENGINE_STDOUT, "what the engine printed on standard output, secrets redacted"),
    (layout::ENGINE_STDERR, "what the engine printed on standard error, secrets redacted"),
    (
        layout::MODEL_CALLS,
        "the calls to models, chained as events are; only where the contract names a model",
    ),
    (
        layout::ATTESTATION,
        "an in-toto v1 Statement over all other files, in a DSSE envelope, signed with Ed25519",
    ),
];

/// Every file of a bundle.
pub(crate) fn files() -> String {
    for name in layout::EXPECTED.into_iter().chain(layout::OPTIONAL) {
        assert!(
            FILES.iter().any(|(known, _)| *known == name),
            "tests/docs/evidence.rs does not say what {name} is"
        );
    }
    let mut text = head(&["file", "what it is"]);
    for (name, what) in FILES {
        assert!(layout::is_known(name), "no run writes {name}");
        text += &row(&[&format!("`{name}`"), what]);
    }
    text
}

/// Every field of the report.
pub(crate) fn report() -> String {
    let mut text = head(&["field", "type", "meaning"]);
    for Key { name, kind, what, .. } in Schema::named("report").keys() {
        text += &row(&[&format!("`{name}`"), &kind, &what]);
    }
    text
}

/// The check of each field of the report.
pub(crate) fn fields() -> String {
    let mut text = head(&["field", "contradicted", "by"]);
    for Key { name, .. } in Schema::named("report").keys() {
        let row_of = FIELDS.iter().find(|row| row.field == name);
        let FieldCheck { reach, against, .. } =
            row_of.unwrap_or_else(|| panic!("`{name}` is not in verify/fields.rs"));
        let reach = match reach {
            Reach::Whole => "yes",
            Reach::Part => "in part",
            Reach::Nothing => "no",
        };
        text += &row(&[&format!("`{name}`"), reach, against]);
    }
    text
}

/// Every type of event.
pub(crate) fn events() -> String {
    let mut text = head(&["type", "meaning"]);
    for kind in EventType::ALL {
        text += &row(&[&format!("`{kind}`"), kind.summary()]);
    }
    text
}

/// Every gate, in order of evaluation.
pub(crate) fn gates() -> String {
    let words = Schema::named("decision").words("Gate");
    let mut text = head(&["gate", "holds when", "evaluated"]);
    for gate in Gate::ALL {
        let what = &words.iter().find(|word| word.word == gate.as_str()).unwrap().what;
        let when = if gate.has_effects() { "inside the destination, if all others hold" } else { "always" };
        text += &row(&[&format!("`{}`", gate.as_str()), what.trim_end_matches('.'), when]);
    }
    text
}

/// Every check of `herma verify`, in order.
pub(crate) fn checks() -> String {
    let mut text = head(&["check", "holds when"]);
    for word in Schema::named("verify").words("CheckName") {
        text += &row(&[&format!("`{}`", word.word), word.what.trim_end_matches('.')]);
    }
    text
}
