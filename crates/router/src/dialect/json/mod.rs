//! JSON as it lies in a body: where each value starts and ends. One reading serves admission and rewriting, so the two
//! cannot disagree about what a body says.

mod scanner;
mod text;

pub(crate) use scanner::{Kind, Scanner};
pub(crate) use text::Text;

/// How deeply values may lie in each other.
pub const MAX_DEPTH: u32 = 64;

/// Why a text is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Something else than JSON has there.
    Malformed { at: usize, what: &'static str },
    /// A value lies in too many others.
    TooDeep { at: usize },
}
