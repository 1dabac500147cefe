//! The table of attempts, read: what each is, and the program that makes them. The docs' test takes this file too, so that
//! it knows nothing of the others.
#![allow(dead_code, reason = "each of the two uses a part of it")]

use std::fmt;

use serde::Deserialize;

/// The helpers of the attempts.
const AGENT: &str = include_str!("agent.py");
const TABLE: &str = include_str!("attempts.toml");

/// One attempt to get out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attempt {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) code: String,
    pub(crate) refused: Vec<String>,
    #[serde(deserialize_with = "record")]
    pub(crate) record: Record,
    pub(crate) host: OnHost,
    pub(crate) only_in: Option<String>,
}

/// An attempt that takes what others need. Each is a run of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bomb {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) shell: String,
    pub(crate) limits: Option<String>,
    pub(crate) ends: String,
    pub(crate) met: Option<String>,
    pub(crate) only_in: Option<String>,
    #[serde(deserialize_with = "record")]
    pub(crate) record: Record,
}

/// A change of an agent's environment that makes its tests pass without a fix. Each is a run of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Poison {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) shell: String,
    pub(crate) verify: String,
    pub(crate) ends: String,
}

impl Bomb {
    /// Whether it is tried in this destination.
    pub(crate) fn is_for(&self, place: &str) -> bool {
        self.only_in.as_ref().is_none_or(|only| only == place)
    }
}

/// The trace of an attempt in a bundle, besides the agent's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The probe of the same layer.
    Probe(String),
    /// The proxy's decision, by host and port.
    Egress(String, String),
    /// A limit that holds.
    Limit(String),
    /// The time at which herma itself saw each file.
    Freshness,
    /// The engine's log, cut where it became too long.
    Log,
}

/// The users for whom it gets out without confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnHost {
    Any,
    Root,
    /// It is not made there.
    No,
}

/// All of it, in a fixed order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    #[serde(rename = "attempt")]
    pub(crate) attempts: Vec<Attempt>,
    #[serde(rename = "bomb")]
    pub(crate) bombs: Vec<Bomb>,
    #[serde(rename = "poison")]
    pub(crate) poisons: Vec<Poison>,
}

pub(crate) fn table() -> Table {
    toml::from_str(TABLE).unwrap()
}

/// The program that makes these attempts; `world` is JSON that says where the canaries are.
pub(crate) fn program(attempts: &[&Attempt], world: &str) -> String {
    let quoted = serde_json::to_string(world).unwrap();
    let mut text = format!("import json\nW = json.loads({quoted})\n{AGENT}");
    for Attempt { name, code, .. } in attempts {
        text.extend(["\n\ndef ", name, "():\n"]);
        text.extend(code.trim().lines().flat_map(|line| ["    ", line, "\n"]));
    }
    let names: Vec<&str> = attempts.iter().map(|attempt| attempt.name.as_str()).collect();
    format!("{text}\n\nmain([{}])\n", names.join(", "))
}

impl Attempt {
    /// Whether it is made in this destination.
    pub(crate) fn is_for(&self, place: &str) -> bool {
        self.only_in.as_ref().is_none_or(|only| only == place)
    }

    /// Whether this is what it says when it is refused.
    pub(crate) fn is_refusal(&self, said: &str) -> bool {
        said.split('+').all(|word| self.refused.iter().any(|refused| refused == word))
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probe(name) => write!(f, "probe `{name}`"),
            Self::Egress(host, port) => write!(f, "event `egress.decided` of {host}:{port}"),
            Self::Limit(name) => write!(f, "limit `{name}`"),
            Self::Freshness => f.write_str("`freshness` in the report"),
            Self::Log => f.write_str("`engine/stdout.log`, cut"),
        }
    }
}

fn record<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Record, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = match text.split_once(' ') {
        Some(("probe", name)) => Some(Record::Probe(name.to_owned())),
        Some(("limit", name)) => Some(Record::Limit(name.to_owned())),
        Some(("egress", to)) => {
            to.rsplit_once(':').map(|(host, port)| Record::Egress(host.to_owned(), port.to_owned()))
        }
        _ => match text.as_str() {
            "freshness" => Some(Record::Freshness),
            "log" => Some(Record::Log),
            _ => None,
        },
    };
    parsed.ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no record")))
}
