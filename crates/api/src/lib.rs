//! The use cases of herma without a terminal, and the types that they take and return. The CLI parses arguments, prints
//! these types and prompts; a server would send them.

mod admissions;
mod approval_sheet;
mod approvals;
mod configured_router;
mod contract_file;
mod contract_summary;
mod destination_choice;
mod destinations;
mod directories;
mod discard;
mod engines;
mod environment_reference;
mod environments;
mod export;
mod file_place;
mod gc;
mod machine_checks;
mod models;
mod outcomes;
pub mod output;
mod policies;
mod reports;
mod router_probe;
mod run_calls;
mod run_lookup;
mod run_tree;
mod store;
mod transcript;

pub use admissions::{AdmissionRef, admission_output, admission_rows};
pub use approval_sheet::{ApprovalSheet, SheetError};
pub use approvals::{ApprovalLookupError, approval_rows, find_approval, open_request};
pub use configured_router::{ConfiguredRouter, Reloaded, RouterError, UsableConfig};
pub use contract_file::{ContractError, ReadContract, find_fixture, find_script, read_contract};
pub use contract_summary::contract_summary;
pub use destination_choice::{DestinationError, resolve_destination};
pub use destinations::{chosen_destination, destination_rows, repository_choice};
pub use directories::{DirectoryError, make_last_component, make_own};
pub use discard::{DiscardError, discard};
pub use engines::{EngineRequestError, engine_row, engine_rows, find_engine, install_engine, switch_engine};
pub use environment_reference::ReferenceError;
pub use environments::{LayersError, environment_layer, environments, prune_environments};
pub use export::{ExportError, export};
pub use gc::{Age, BadAge, GcError, GcLimits, collect_garbage, plan_gc};
pub use machine_checks::{check_engine, check_installation, check_toolchains, trust_chain_help};
pub use models::model_rows;
pub use outcomes::{OutcomeSubject, SubjectError, given_word, outcome_row};
pub use policies::{PolicyQuestion, QuestionError, decide_case, decision_item, rule_item};
pub use reports::{ReportError, read_report};
pub use router_probe::{RouterProbeError, probe_model};
pub use run_calls::{RunCalls, run_calls};
pub use run_lookup::{RunLookupError, expected_run, find_finished_run, find_run, has_bundle, run_rows};
pub use run_tree::run_tree;
pub use store::{
    StoreCommandError, StoreTarget, check_store, migrate_store, rebuild_store, set_corrupt_store_aside,
};
pub use transcript::{denial, read_transcript};
