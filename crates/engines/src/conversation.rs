//! A dialogue with an agent that has to be answered: what it is told, and what it asks herma for.

use serde_json::Value;

use crate::engine::Said;

/// One dialogue. It knows no process and no clock: it is given the agent's lines, and says what follows from them.
pub trait Conversation: Send {
    /// What herma says before the agent has said anything.
    fn open(&mut self) -> Vec<Turn>;

    /// What the agent said with this line, or `None` if it said nothing that is known here, and what herma does about it.
    ///
    /// It takes anything, as [`crate::OutputReader::line`] does, and holds a bounded part of it.
    fn hear(&mut self, line: &[u8]) -> (Option<Said>, Vec<Turn>);
}

/// What herma does in a dialogue. A line has no end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It says this.
    Say(String),
    /// It is asked whether the agent may do something, and says one of two things.
    Answer(Question),
    /// From now on it says this first where it has to end the agent.
    Farewell(String),
    /// It says nothing more: the agent's input ends.
    End,
}

/// Whether the agent may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The tool that it wants to call.
    pub tool: String,
    /// With what, as one would type it.
    pub command: String,
    /// Who asks.
    pub by: Asking,
    /// How it is told yes, for this once; none where it offers no such answer, and then it is told no.
    pub yes: Option<String>,
    /// How it is told no.
    pub no: Refusal,
}

/// Who asks in a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// The agent, which tells of the call by asking about it.
    Agent,
    /// A hook of the agent, which tells of the call as well.
    Hook,
}

/// How an agent is told no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no place for a reason.
    Bare(String),
    /// Its model reads the reason, which belongs at this place (a JSON pointer).
    Reasoned {
        /// What is said, with a text at that place.
        line: Value,
        /// The place.
        at: &'static str,
    },
}

impl Refusal {
    /// What is said where this is the reason.
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
