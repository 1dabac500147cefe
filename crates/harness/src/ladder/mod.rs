//! The proof ladder: what an engine has proven, and how it proves the next stage.

mod candidate;
mod cases;
mod coverage;
mod ground;
mod meddler;
mod overview;
mod proofs;
mod prove;

pub use overview::{Rung, RungState, ladder};
pub use proofs::{Proofs, Standing};
pub use prove::{People, ProveError, prove};
