//! Why a request is not passed on.

use crate::json::{Flaw, MAX_DEPTH};
use crate::reaches_out::ReachesOut;

/// Why a request is not passed on. The client gets the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is larger than the caller takes.
    #[error("the request body has {size} bytes, and at most {limit} are taken; send less context")]
    TooLarge {
        /// How large it is, or how much of it was read.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The body is not UTF-8.
    #[error("the request body is not UTF-8 at byte {at}; send JSON in UTF-8")]
    NotUtf8 {
        /// The first byte that is not.
        at: usize,
    },
    /// The body is not JSON.
    #[error("the request body is not JSON at byte {at}: {what}")]
    NotJson {
        /// Where.
        at: usize,
        /// The error there.
        what: &'static str,
    },
    /// The body is JSON, but not an object.
    #[error("the request body is not a JSON object; send one object with `model` in it")]
    NotAnObject,
    /// Values are nested too deeply.
    #[error("the request body is nested deeper than {MAX_DEPTH} levels at byte {at}; flatten it")]
    TooDeep {
        /// Where the level begins that is one too many.
        at: usize,
    },
    /// A key is there twice, and readers differ in which of the two they take.
    #[error("the key `{path}` is there twice; send it once")]
    DuplicateKey {
        /// The second one.
        path: String,
    },
    /// A key is another one but for the case of its letters, and some readers take it for that one.
    #[error("the key `{path}` can be taken for `{key}`; spell it exactly or leave it out")]
    LookalikeKey {
        /// The key as it is written.
        path: String,
        /// The key that it resembles.
        key: String,
    },
    /// A key that must be there is not.
    #[error("the key `{key}` is missing; name the model to ask")]
    Missing {
        /// Which.
        key: &'static str,
    },
    /// A value has a type that it cannot have.
    #[error("`{path}` is not {expected}; send {expected}")]
    WrongType {
        /// Which value.
        path: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A number is not a whole number in its range.
    #[error("`{path}` is not a whole number from {least} to {most}")]
    OutOfRange {
        /// Which number.
        path: String,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// A key that the API does not list, and that no configuration adds.
    #[error(
        "the key `{path}` is not one that herma passes on in this API; remove it, or have the operator add it to `extra_request_keys` of the upstream"
    )]
    UnknownKey {
        /// Which.
        path: String,
    },
    /// The request would make the upstream reach out, and that is not admitted.
    #[error("{0}; remove it, or have it admitted")]
    ReachesOut(ReachesOut),
}

impl Refusal {
    /// The HTTP status that says it.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::ReachesOut(_) => 403,
            Self::NotUtf8 { .. }
            | Self::NotJson { .. }
            | Self::NotAnObject
            | Self::TooDeep { .. }
            | Self::DuplicateKey { .. }
            | Self::LookalikeKey { .. }
            | Self::Missing { .. }
            | Self::UnknownKey { .. }
            | Self::WrongType { .. }
            | Self::OutOfRange { .. } => 400,
        }
    }

    /// The place in the body that it is about, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::DuplicateKey { path }
            | Self::LookalikeKey { path, .. }
            | Self::UnknownKey { path }
            | Self::WrongType { path, .. }
            | Self::OutOfRange { path, .. } => Some(path),
            Self::Missing { key } => Some(key),
            Self::ReachesOut(found) => Some(&found.path),
            Self::TooLarge { .. }
            | Self::NotUtf8 { .. }
            | Self::NotJson { .. }
            | Self::NotAnObject
            | Self::TooDeep { .. } => None,
        }
    }
}

impl From<Flaw> for Refusal {
    fn from(flaw: Flaw) -> Self {
        match flaw {
            Flaw::Malformed { at, what } => Self::NotJson { at, what },
            Flaw::TooDeep { at } => Self::TooDeep { at },
        }
    }
}
