//! A tool call of an agent, and the decision of the policies on it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest subject of a call. A shell takes no longer command; a longer one is denied.
pub const MAX_SUBJECT_BYTES: usize = 128 << 10;

/// The tool by which a child run is requested, in events and in policies.
pub const CHILD_TOOL: &str = "herma run";

/// The action of a tool call, as policies name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolAction {
    /// Run a command.
    Shell,
    /// Make, change or delete a file.
    Write,
    /// Read or list files.
    Read,
    /// Ask something outside: a page, a search.
    Fetch,
    /// Call a tool of a server that speaks MCP.
    Mcp,
    /// Start another agent, or something that goes on by itself.
    Spawn,
    /// Anything else: a plan, a tool that is not known.
    Other,
}

/// Tools by their names in the agents that herma drives, without case, `_` and `-`.
const TOOLS: &[(ToolAction, &[&str])] = &[
    (
        ToolAction::Shell,
        &["shell", "bash", "execcommand", "localshell", "writestdin", "terminal", "process", "execute"],
    ),
    (
        ToolAction::Write,
        &["write", "edit", "multiedit", "notebookedit", "applypatch", "patch", "writefile", "delete", "move"],
    ),
    (
        ToolAction::Read,
        &[
            "read",
            "readfile",
            "glob",
            "grep",
            "ls",
            "list",
            "find",
            "search",
            "searchfiles",
            "viewimage",
            "view",
        ],
    ),
    (
        ToolAction::Fetch,
        &["fetch", "webfetch", "websearch", "webextract", "webcrawl", "browser", "browsernavigate"],
    ),
    (
        ToolAction::Spawn,
        &[
            "agent",
            "task",
            "spawnagent",
            "delegatetask",
            "mixtureofagents",
            "cronjob",
            "sendmessage",
            "schedulewakeup",
            "croncreate",
            "workflow",
        ],
    ),
];

impl ToolAction {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Shell, Self::Write, Self::Read, Self::Fetch, Self::Mcp, Self::Spawn, Self::Other];

    /// The action of the tool of this name.
    #[must_use]
    pub fn of_tool(name: &str) -> Self {
        let plain: String =
            name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
        if plain.starts_with("mcp") {
            return Self::Mcp;
        }
        if plain.starts_with("kanban") {
            return Self::Spawn;
        }
        let known = TOOLS.iter().find(|(_, names)| names.contains(&plain.as_str()));
        known.map_or(Self::Other, |(action, _)| *action)
    }

    /// The name as policies and files have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Write => "write",
            Self::Read => "read",
            Self::Fetch => "fetch",
            Self::Mcp => "mcp",
            Self::Spawn => "spawn",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ToolAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ToolAction {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|action| action.as_str() == name);
        found.ok_or_else(|| format!("`{name}` is no action of a tool; there are {all}"))
    }
}

/// A tool call that an agent is about to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool, by the agent's name for it.
    pub tool: String,
    /// Its action.
    pub action: ToolAction,
    /// Its subject: the command, the path, the address, or all arguments.
    pub subject: String,
}

/// The decision of the policies on a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolAnswer {
    /// Whether it may be made.
    pub allowed: bool,
    /// Why not, for the model to read.
    pub reason: String,
}

impl ToolAnswer {
    /// A no, with its reason.
    #[must_use]
    pub fn no(reason: impl Into<String>) -> Self {
        Self { allowed: false, reason: reason.into() }
    }
}

/// The component that requests permission for an engine's tool calls, and how strong that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Asking")]
pub enum PermissionProtocol {
    /// The agent asks by its own mechanism, and honours the answer; a modified agent can skip it. The sandbox still
    /// confines it.
    Courtesy,
}

impl PermissionProtocol {
    /// The name as files have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Courtesy => "courtesy",
        }
    }
}

/// The known facts about an engine's tool calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// The strength of the guarantee that the agent asks.
    pub asking: PermissionProtocol,
    /// The digest of the policies that it was answered by.
    pub policy: crate::Digest,
    /// How many calls it asked about.
    pub asked: u64,
    /// How many of them were denied.
    pub denied: u64,
    /// How many calls it reported without asking first.
    pub unasked: u64,
    /// The tool calls that its model requested; none for a run without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<ModelToolCalls>,
}

/// The tool calls that a model asked for, as the router counted them in its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelToolCalls {
    /// How many it asked the engine for.
    pub asked_for: u64,
    /// How many it requested of herma, at the gates, before the engine was started. None of them is made.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub at_gates: u64,
    /// How many more it requested of the engine than the engine asked about or reported; below 0 if fewer, and 0
    /// if they reconcile.
    pub unreconciled: i64,
}

impl ToolUse {
    /// How many more calls a model requested than the engine asked about or reported.
    #[must_use]
    pub fn difference(&self, asked_for: u64) -> i64 {
        let signed = |calls: u64| i64::try_from(calls).unwrap_or(i64::MAX);
        signed(asked_for).saturating_sub(signed(self.asked.saturating_add(self.unasked)))
    }

    /// The same, with what the model asked for compared to what is known of the engine.
    #[must_use]
    pub fn reconciled(mut self) -> Self {
        let compared = |calls: ModelToolCalls| ModelToolCalls {
            unreconciled: self.difference(calls.asked_for),
            ..calls
        };
        self.model_calls = self.model_calls.map(compared);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_is_two_things_and_every_name_is_read_back() {
        let mut seen = std::collections::BTreeSet::new();
        for (action, names) in TOOLS {
            for name in *names {
                assert!(seen.insert(*name), "{name}");
                assert_eq!(ToolAction::of_tool(&name.to_uppercase()), *action);
            }
        }
        for action in ToolAction::ALL {
            assert_eq!(action.as_str().parse(), Ok(action));
        }
        assert!("push".parse::<ToolAction>().is_err());
    }

    #[test]
    fn tool_calls_of_the_model_are_compared_with_those_of_the_engine() {
        let of = |asked_for, asked, unasked| {
            let calls = ModelToolCalls { asked_for, at_gates: 1, unreconciled: 0 };
            let (asking, policy) = (PermissionProtocol::Courtesy, crate::Digest::of(b""));
            let used = ToolUse { asking, policy, asked, denied: 0, unasked, model_calls: Some(calls) };
            used.reconciled().model_calls.unwrap().unreconciled
        };
        assert_eq!([of(3, 3, 0), of(3, 2, 1), of(3, 2, 0), of(1, 2, 2)], [0, 0, 1, -3]);
        assert_eq!([of(u64::MAX, 0, 0), of(0, u64::MAX, u64::MAX)], [i64::MAX, -i64::MAX]);
    }

    #[test]
    fn the_names_that_agents_use_are_known() {
        use ToolAction as A;
        for (name, action) in [
            ("Bash", A::Shell),
            ("exec_command", A::Shell),
            ("apply_patch", A::Write),
            ("NotebookEdit", A::Write),
            ("read_file", A::Read),
            ("WebFetch", A::Fetch),
            ("mcp__files__delete", A::Mcp),
            ("delegate_task", A::Spawn),
            ("kanban_create", A::Spawn),
            ("TodoWrite", A::Other),
            ("", A::Other),
        ] {
            assert_eq!(ToolAction::of_tool(name), action, "{name}");
        }
    }
}
