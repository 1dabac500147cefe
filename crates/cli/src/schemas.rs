//! The schemas of everything that herma writes, by name.

use herma_destination::Confinement;
use herma_model::contract::Terms;
use herma_model::step::TraceLine;
use herma_model::{Decision, Event, Report};
use schemars::{Schema, schema_for};

use crate::output;

/// A published schema.
pub struct Published {
    /// The name that `herma schema` knows it by.
    pub name: &'static str,
    /// What it is for.
    pub what: &'static str,
    /// Makes it.
    pub make: fn() -> Schema,
}

/// Every schema that herma publishes.
pub const SCHEMAS: &[Published] = &[
    Published { name: "contract", what: "the front matter of a contract", make: || schema_for!(Terms) },
    Published { name: "report", what: "report.json; `run`, `demo` and `show`", make: || schema_for!(Report) },
    Published { name: "event", what: "a line of events.jsonl", make: || schema_for!(Event) },
    Published { name: "trace", what: "a line of trace.jsonl", make: || schema_for!(TraceLine) },
    Published { name: "decision", what: "decision.json", make: || schema_for!(Decision) },
    Published { name: "confinement", what: "confinement.json", make: || schema_for!(Confinement) },
    Published { name: "runs", what: "`runs`", make: || schema_for!(output::RunsOutput) },
    Published { name: "diff", what: "`diff`", make: || schema_for!(output::DiffOutput) },
    Published { name: "logs", what: "`logs`", make: || schema_for!(output::LogsOutput) },
    Published { name: "verify", what: "`verify`", make: || schema_for!(output::VerifyOutput) },
    Published {
        name: "contract-check",
        what: "`contract check` and `contract digest`",
        make: || schema_for!(output::ContractOutput),
    },
    Published {
        name: "written",
        what: "`init` and `contract new`",
        make: || schema_for!(output::WrittenOutput),
    },
    Published { name: "doctor", what: "`doctor`", make: || schema_for!(output::DoctorOutput) },
    Published {
        name: "schemas",
        what: "`schema` without a name",
        make: || schema_for!(output::SchemasOutput),
    },
    Published { name: "completions", what: "`completions`", make: || schema_for!(output::CompletionsOutput) },
    Published { name: "bench", what: "`bench`", make: || schema_for!(output::BenchOutput) },
    Published {
        name: "error",
        what: "any command that did not work",
        make: || schema_for!(output::ErrorOutput),
    },
];
