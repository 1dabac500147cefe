//! The proof ladder: what an engine has proven, and how it proves the next stage.

mod candidate;
mod cases;
mod climb;
mod coverage;
mod ground;
mod meddler;
mod overview;
mod proofs;
mod prove;
mod record;

pub use cases::case_names;
pub use climb::{Climb, ClimbState, ClimbStep, ClimbWatch, climb_status};
pub use overview::{Rung, RungState, ladder};
pub use proofs::{Proofs, Standing};
pub use prove::{People, ProveError, prove};
