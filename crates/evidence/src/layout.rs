//! The names of the files in a bundle.

/// The report, for programs.
pub const REPORT: &str = "report.json";
/// The report, for people.
pub const REPORT_MD: &str = "report.md";
/// The events, one per line.
pub const EVENTS: &str = "events.jsonl";
/// The steps that were about to be taken, one a line.
pub const TRACE: &str = "trace.jsonl";
/// The engine's changes.
pub const PATCH: &str = "patch.diff";
/// The output of the verification commands.
pub const TEST_LOG: &str = "test.log";
/// The eligibility decision.
pub const DECISION: &str = "decision.json";
/// The contract as it was written.
pub const CONTRACT: &str = "contract.md";
/// How the environment was built, and what the verification commands did on the base. Only runs with one have it.
pub const ENVIRONMENT: &str = "environment.json";
/// The results of the confinement probes.
pub const CONFINEMENT: &str = "confinement.json";
/// The calls to models that the router saw, one a line.
pub const MODEL_CALLS: &str = "model-calls.jsonl";
/// The agent's words and actions in a readable form, one a line. Only runs whose engine was started have one.
pub const TRANSCRIPT: &str = "transcript.jsonl";
/// The engine's stdout.
pub const ENGINE_STDOUT: &str = "engine/stdout.log";
/// The engine's stderr.
pub const ENGINE_STDERR: &str = "engine/stderr.log";
/// The signed statement over all other files.
pub const ATTESTATION: &str = "attestation.json";
/// The operator's outcome, written later.
pub const OUTCOME: &str = "outcome.json";

/// The one directory inside a bundle.
pub const ENGINE_DIR: &str = "engine";

/// The files that each bundle has or names in the report's `not_applicable`, with the reason.
pub const EXPECTED: [&str; 11] = [
    REPORT_MD,
    EVENTS,
    TRACE,
    PATCH,
    TEST_LOG,
    DECISION,
    CONTRACT,
    CONFINEMENT,
    MODEL_CALLS,
    ENGINE_STDOUT,
    ENGINE_STDERR,
];

/// Whether a run may write a file of this name into its bundle.
#[must_use]
pub fn is_known(name: &str) -> bool {
    name == REPORT || name == ATTESTATION || is_artifact(name)
}

/// The files that a bundle may have, without a reason where it has none.
pub const OPTIONAL: [&str; 2] = [ENVIRONMENT, TRANSCRIPT];

/// Whether the report lists a file of this name among its artifacts.
#[must_use]
pub fn is_artifact(name: &str) -> bool {
    EXPECTED.contains(&name) || OPTIONAL.contains(&name)
}
