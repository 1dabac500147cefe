//! The capabilities of an engine beyond working on a contract, and the component that provides each.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that not every engine can do. A contract can need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// It goes on with the session of an earlier run.
    Resume,
    /// It reports its messages and its tool calls in a form that herma reads, while it works.
    StructuredEvents,
    /// It is driven by the Agent Client Protocol.
    Acp,
    /// It asks before it calls a tool, by a hook that herma puts into its configuration.
    ToolHooks,
    /// It is given servers of the Model Context Protocol.
    Mcp,
    /// It has a reviewer of its own, which can reject the work, and says so.
    Reviewer,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Resume, Self::StructuredEvents, Self::Acp, Self::ToolHooks, Self::Mcp, Self::Reviewer];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::StructuredEvents => "structured_events",
            Self::Acp => "acp",
            Self::ToolHooks => "tool_hooks",
            Self::Mcp => "mcp",
            Self::Reviewer => "reviewer",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// By whose means an engine can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// The agent has it, and herma uses it as it is.
    Native,
    /// herma gets the same by other means of the agent, with a program of its own in between.
    Translated,
    /// The agent does not have it, or herma does not open the way to it.
    Unsupported,
}

impl Support {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Native, Self::Translated, Self::Unsupported];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Translated => "translated",
            Self::Unsupported => "unsupported",
        }
    }

    /// Whether it can be done at all.
    #[must_use]
    pub fn is_there(self) -> bool {
        self != Self::Unsupported
    }
}

/// The declaration of an engine about each capability. There is no default: none can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Capabilities {
    /// It goes on with the session of an earlier run.
    pub resume: Support,
    /// It reports its messages and its tool calls in a form that herma reads, while it works.
    pub structured_events: Support,
    /// It is driven by the Agent Client Protocol.
    pub acp: Support,
    /// It asks before it calls a tool, by a hook that herma puts into its configuration.
    pub tool_hooks: Support,
    /// It is given servers of the Model Context Protocol.
    pub mcp: Support,
    /// It has a reviewer of its own, which can reject the work, and says so.
    pub reviewer: Support,
}

impl Capabilities {
    /// The declaration about one.
    #[must_use]
    pub fn of(self, capability: Capability) -> Support {
        match capability {
            Capability::Resume => self.resume,
            Capability::StructuredEvents => self.structured_events,
            Capability::Acp => self.acp,
            Capability::ToolHooks => self.tool_hooks,
            Capability::Mcp => self.mcp,
            Capability::Reviewer => self.reviewer,
        }
    }

    /// Which ones are declared as this.
    pub fn that_are(self, support: Support) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.of(*capability) == support)
    }

    /// The declarations about the capabilities that a contract needs.
    #[must_use]
    pub fn for_needs(self, needs: &[Capability]) -> BTreeMap<Capability, Support> {
        needs.iter().map(|capability| (*capability, self.of(*capability))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_field_is_written_and_shown_as_its_own_capability() {
        for (at, capability) in Capability::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(capability).unwrap(), capability.as_str());
            let support = |other: usize| if at == other { Support::Translated } else { Support::Unsupported };
            let declared = Capabilities {
                resume: support(0),
                structured_events: support(1),
                acp: support(2),
                tool_hooks: support(3),
                mcp: support(4),
                reviewer: support(5),
            };
            assert_eq!(declared.that_are(Support::Translated).collect::<Vec<_>>(), [capability]);
            assert_eq!(declared.that_are(Support::Native).count(), 0);
            let written = serde_json::to_value(declared).unwrap();
            assert_eq!(written[capability.as_str()], "translated");
            assert_eq!(written.as_object().map(serde_json::Map::len), Some(Capability::ALL.len()));
        }
        for support in Support::ALL {
            assert_eq!(serde_json::to_value(support).unwrap(), support.as_str());
            assert_eq!(support.is_there(), support.as_str() != "unsupported");
        }
    }

    #[test]
    fn each_needed_capability_is_listed_once() {
        let declared = Capabilities {
            resume: Support::Translated,
            structured_events: Support::Native,
            acp: Support::Unsupported,
            tool_hooks: Support::Native,
            mcp: Support::Unsupported,
            reviewer: Support::Unsupported,
        };
        let told = declared.for_needs(&[Capability::Mcp, Capability::Resume, Capability::Mcp]);
        let written: Value = serde_json::to_value(&told).unwrap();
        assert_eq!(written, json!({ "resume": "translated", "mcp": "unsupported" }));
        assert_eq!(serde_json::from_value::<BTreeMap<Capability, Support>>(written).unwrap(), told);
        assert!(declared.for_needs(&[]).is_empty());
    }
}
