//! Scripts. A script is a YAML file with a name and a list of turns:
//!
//! ```yaml
//! name: fix-slugify
//! turns:
//!   - say: I will run the test.
//!     call: { shell: sh tests/slugify_test.sh }
//!   - say: It passes.
//! ```

use herma_core::script::{self, ScriptWords};
use serde::Deserialize;

pub use herma_core::script::{BadScript, MAX_BYTES};

use crate::turn::Turn;

/// Suggestions in the errors of a bad script.
const WORDS: ScriptWords = ScriptWords {
    one_key: "a call has one key; put further ones into `calls: [...]`",
    begins_with: "`name:` and `turns:` with a list of turns",
};

/// The answers, turn by turn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its name.
    pub name: ScriptName,
    /// Which requests it answers; without it, all of them.
    #[serde(rename = "match", default)]
    pub matches: Match,
    /// The models that it claims to be. A request may name others; whether it may is decided elsewhere.
    #[serde(default = "usual_models")]
    pub models: Vec<String>,
    /// The turns, in order.
    pub turns: Turns,
    /// Whether the turns begin again after the last one. Without it, `afterwards` answers from then on.
    #[serde(default)]
    pub repeat: bool,
    /// The text after the last turn.
    #[serde(default = "usual_last_words")]
    pub afterwards: String,
    /// The answer to requests beside the conversation.
    pub side: Option<Side>,
}

impl Script {
    /// Reads a script from a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadScript> {
        script::parse(bytes, WORDS)
    }

    /// Whether any turn calls a tool: then the script is for clients that have tools.
    pub(super) fn calls_tools(&self) -> bool {
        self.turns.0.iter().any(|turn| !turn.content.calls.is_empty())
    }
}

fn usual_models() -> Vec<String> {
    vec!["scripted".to_owned()]
}

fn usual_last_words() -> String {
    "Done.".to_owned()
}

/// A script's name: lower-case letters, digits and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ScriptName(String);

impl ScriptName {
    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ScriptName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text))
        } else {
            let shown: String = text.chars().take(64).collect();
            Err(format!("`{shown}` is not a name: expected up to 64 lower-case letters, digits and `-`"))
        }
    }
}

/// Which requests a script answers. Where both are given, both must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// Only those of this run.
    pub run: Option<String>,
    /// Those whose conversation has this text in it.
    pub marker: Option<Marker>,
}

/// A text that is looked for in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Marker(String);

impl Marker {
    /// Whether the conversation has it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.contains(&self.0)
    }
}

impl TryFrom<String> for Marker {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.trim() {
            "" => Err("a marker is a text that is not empty".to_owned()),
            _ => Ok(Self(text)),
        }
    }
}

/// The turns of a script: at least one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Vec<Turn>")]
pub struct Turns(Vec<Turn>);

impl Turns {
    /// The turn for a conversation in which the model spoke `answered` times; none after the last.
    pub(super) fn at(&self, answered: usize, repeat: bool) -> Option<&Turn> {
        // Never empty, so the remainder is one of them.
        let at = if repeat { answered % self.0.len().max(1) } else { answered };
        self.0.get(at)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl TryFrom<Vec<Turn>> for Turns {
    type Error = String;

    fn try_from(turns: Vec<Turn>) -> Result<Self, String> {
        if turns.is_empty() {
            return Err("`turns` is a list of at least one turn".to_owned());
        }
        Ok(Self(turns))
    }
}

/// The answer to requests beside the conversation, such as those for a title.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The answer.
    pub say: String,
    /// Texts by which such a request is known, beside having no tools.
    #[serde(default)]
    pub markers: Vec<Marker>,
}
