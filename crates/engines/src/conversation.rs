//! A dialogue with an agent that has to be answered: what it is told, and what it asks herma for.

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
    /// How it is told yes, for this once; none where it offers no such answer, and then it is told no.
    pub yes: Option<String>,
    /// How it is told no.
    pub no: String,
}
