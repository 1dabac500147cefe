//! The output of `herma-stub --identity`.

use std::fmt;

use herma_core::engine::EngineName;
use serde::{Deserialize, Serialize};

/// The longest version: it goes into messages and reports.
const MAX_VERSION: usize = 64;

/// The identity of a program: `{"engine":"stub","version":"0.1.0"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StubIdentity {
    /// The engine's name.
    pub engine: EngineName,
    /// The program's version: printable, without spaces.
    pub version: String,
}

impl StubIdentity {
    /// Parses a program's output; `None` if it is anything but one identity.
    #[must_use]
    pub fn read(output: &[u8]) -> Option<Self> {
        let read: Self = serde_json::from_slice(output).ok()?;
        let sound = (1..=MAX_VERSION).contains(&read.version.len())
            && read.version.bytes().all(|b| b.is_ascii_graphic());
        sound.then_some(read)
    }
}

impl fmt::Display for StubIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.engine, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_identity_is_read_and_nothing_else() {
        let read = |text: &str| StubIdentity::read(text.as_bytes()).map(|identity| identity.to_string());
        assert_eq!(read("{\"engine\":\"stub\",\"version\":\"0.1.0\"}\n").as_deref(), Some("stub 0.1.0"));
        assert_eq!(read(r#"{"engine":"other","version":"2"}"#).as_deref(), Some("other 2"));
        let long = format!(r#"{{"engine":"stub","version":"{}"}}"#, "1".repeat(65));
        for bad in [
            "",
            "stub 0.1.0",
            r#"{"engine":"stub"}"#,
            r#"{"engine":"stub","version":""}"#,
            r#"{"engine":"stub","version":"1 admitted"}"#,
            r#"{"engine":"stub","version":"1\u202e"}"#,
            r#"{"engine":"stub","version":"1\n"}"#,
            r#"{"engine":"Stub","version":"1"}"#,
            r#"{"engine":"stub","version":"1","version":"2"}"#,
            r#"{"engine":"stub","version":"1","more":1}"#,
            r#"{"engine":"stub","version":"1"}{"engine":"stub","version":"1"}"#,
            &long,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(StubIdentity::read(b"\xff"), None);
    }
}
