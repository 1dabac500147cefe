//! The session of an earlier run that an agent resumes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest session id.
const MAX_SESSION_ID_BYTES: usize = 128;

/// An agent's own session id. The agent chose it and it is used in argv and in paths: it can be neither an option
/// nor a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// A session id that cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a session holds 1 to {MAX_SESSION_ID_BYTES} letters, digits, `-` and `_`, and begins with a letter or digit"
)]
pub struct BadSessionId;

impl TryFrom<String> for SessionId {
    type Error = BadSessionId;

    fn try_from(text: String) -> Result<Self, BadSessionId> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let sound = text.len() <= MAX_SESSION_ID_BYTES
            && text.bytes().all(plain)
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if sound { Ok(Self(text)) } else { Err(BadSessionId) }
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A session to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Its own session.
    pub session: SessionId,
    /// The message instead of the contract, which the agent knows.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_of_real_agents_are_accepted() {
        for name in ["0199a213-81c0-7800-8aa1-bbab2a035a53", "ses_6e1a2bffe4b0", "a"] {
            assert_eq!(SessionId::try_from(name.to_owned()).unwrap().to_string(), name);
        }
    }

    #[test]
    fn a_name_that_is_an_option_a_path_or_a_text_does_not() {
        let long = "a".repeat(MAX_SESSION_ID_BYTES + 1);
        for name in ["", "-c", "--config=x", "_a", "../a", "a/b", "a b", "a\n", "a.b", "\u{e9}", &long] {
            assert_eq!(SessionId::try_from(name.to_owned()), Err(BadSessionId), "{name:?}");
        }
    }
}
