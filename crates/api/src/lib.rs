//! The use cases of herma without a terminal, and the types that they take and return. The CLI parses arguments, prints
//! these types and prompts; a server would send them.

mod approval_sheet;
mod contract_file;
mod destination_choice;
mod outcomes;
pub mod output;
mod reports;
mod run_tree;

pub use approval_sheet::{ApprovalSheet, SheetError};
pub use contract_file::{ContractError, ReadContract, find_fixture, find_script, read_contract};
pub use destination_choice::{DestinationError, resolve_destination};
pub use outcomes::{given_word, outcome_row};
pub use reports::{ReportError, read_report};
pub use run_tree::run_tree;
