//! The engine seam: how an agent is prepared, started and heard. One file per engine, one line each in the registry;
//! nothing else in herma names an engine.

mod digest;
mod engine;
pub mod fake;
mod lines;
pub mod protocol;
mod registry;
pub mod stub;

pub use digest::program_digest;
pub use engine::{Assignment, Engine, EngineError, Launch, OutputReader, Said};
pub use lines::{LineSplitter, MAX_LINE};
pub use registry::Registry;
