//! Scans JSON in place: the start and the end of each value. Admission and rewriting use the same scan, so they cannot
//! disagree about a body.

mod scanner;
mod text;

pub(crate) use scanner::{Kind, Scanner};
pub(crate) use text::Text;

/// The most levels of nested values.
pub const MAX_DEPTH: u32 = 64;

/// Why a text is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The text is not JSON there.
    Malformed { at: usize, what: &'static str },
    /// A value is nested too deeply.
    TooDeep { at: usize },
}
