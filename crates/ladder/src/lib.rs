//! The proof ladder: proves the stages of an engine, compares engines, and holds the failure matrix.

mod candidate;
mod cases;
mod climb;
mod compare;
mod concurrent_writer;
mod coverage;
mod error;
pub mod failure_matrix;
mod matrix;
mod overview;
mod people;
mod proof_site;
mod prove;
mod record;

pub use candidate::{ACCEPTED, accepted_runs};
pub use cases::case_names;
pub use climb::{Climb, ClimbState, ClimbStep, ClimbWatch, climb_status};
pub use compare::{
    CompareError, ComparisonError, ComparisonOrder, Comparisons, ContractOnLanes, Turns, compare,
    comparison_markdown,
};
pub use error::ProveError;
pub use matrix::{MatrixError, MatrixRecordError, MatrixRecords, MatrixWatch, run_matrix};
pub use overview::{Rung, RungState, ladder};
pub use people::People;
pub use prove::prove;
