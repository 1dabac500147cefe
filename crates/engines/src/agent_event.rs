//! The events that an agent reports in its output.

use herma_core::engine::EngineResult;

/// An event that an agent reports. It is a log line: it can make a verdict worse, never better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// It has started.
    Hello,
    /// It has started, with this session id.
    Session(String),
    /// A message for people.
    Message(String),
    /// Its plan, in order.
    Plan(Vec<String>),
    /// It calls a tool.
    Tool {
        /// The tool.
        name: String,
        /// The arguments, as one would type them.
        command: String,
    },
    /// It cannot resume its session later.
    NoWayBack,
    /// The tokens that it reports; the real usage is in the router's record.
    Used {
        /// Input tokens.
        input: u64,
        /// Output tokens.
        output: u64,
    },
    /// Its own result.
    Result(EngineResult),
    /// Several events, in order.
    All(Vec<Self>),
    /// A malformed line of the agent's protocol, with the problem.
    Malformed(String),
}

impl AgentEvent {
    /// A line that is known and carries nothing for the record.
    pub const NOTHING: Self = Self::All(Vec::new());
}
