//! A dialogue with an agent that expects replies: herma's messages, and the agent's permission requests.

use serde_json::Value;

use crate::agent_event::AgentEvent;

/// One dialogue. It has no process and no clock: it gets the agent's lines and returns the actions that follow.
pub trait Conversation: Send {
    /// The actions before the agent's first line.
    fn open(&mut self) -> Vec<DialogueAction>;

    /// The event in this line, or `None` if it is unknown, and the actions that follow.
    ///
    /// It accepts any bytes, as [`crate::OutputReader::line`] does, and keeps a bounded part of them.
    fn hear(&mut self, line: &[u8]) -> (Option<AgentEvent>, Vec<DialogueAction>);
}

/// An action of herma in a dialogue. Lines have no line end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogueAction {
    /// Sends this line.
    Say(String),
    /// Decides a permission request, and sends one of its two replies.
    Answer(PermissionRequest),
    /// From now on, sends this line before it ends the agent.
    ShutdownMessage(String),
    /// Closes the agent's stdin.
    End,
}

/// An agent's request for permission to call a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The tool.
    pub tool: String,
    /// The arguments, as one would type them.
    pub command: String,
    /// The origin of the request.
    pub by: PermissionSource,
    /// The reply that allows the call once; `None` if the agent offers none, and then it is denied.
    pub yes: Option<String>,
    /// The reply that denies it.
    pub no: DenialReply,
}

/// The origin of a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionSource {
    /// The agent, whose request is the only report of the call.
    Agent,
    /// A hook of the agent, which reports the call as well.
    Hook,
}

/// The reply that denies a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialReply {
    /// It has no field for a reason.
    Bare(String),
    /// Its model reads the reason, at this JSON pointer.
    Reasoned {
        /// The reply, with a placeholder at the pointer.
        line: Value,
        /// The JSON pointer.
        at: &'static str,
    },
}

impl DenialReply {
    /// The reply with this reason.
    #[must_use]
    pub fn because(self, reason: &str) -> String {
        match self {
            Self::Bare(line) => line,
            Self::Reasoned { mut line, at } => {
                if let Some(place) = line.pointer_mut(at) {
                    *place = reason.into();
                }
                line.to_string()
            }
        }
    }
}
