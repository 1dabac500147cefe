//! A run, from contract to verdict. `run.rs` is the place to start reading.

mod bundle_check;
mod checks;
mod clock;
mod close;
mod collect;
mod error;
mod facts;
pub mod failure_matrix;
mod gates;
mod home;
mod installation;
mod order;
mod prepare;
mod probe;
mod progress;
mod recover;
mod run;
mod supervise;
mod target;
mod verification;

pub use bundle_check::verify_bundle;
pub use clock::SystemClock;
pub use error::OrderError;
pub use home::{Home, RunDirs};
pub use installation::{Installation, OpenError, Settings};
pub use order::Order;
pub use progress::{Progress, Unwatched};
pub use recover::{Recovered, recover};
pub use run::{Finished, run};
