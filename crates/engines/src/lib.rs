//! Engines: how an agent is prepared, started and its output parsed. One file per engine, one line each in the
//! registry; nothing else in herma names an engine.

pub mod acp;
mod agent_event;
pub mod case;
pub mod claude;
pub mod codex;
mod conversation;
mod digest;
mod engine;
pub mod env;
pub mod fake;
pub mod hermes;
pub mod hook;
mod installed;
mod json_lines;
mod lines;
mod memory;
pub mod opencode;
mod origin;
mod package;
pub mod pi;
mod prompt;
pub mod protocol;
mod registry;
mod session;
mod source;
pub mod stub;
mod subject;
mod transcript;
mod tree;

pub use agent_event::AgentEvent;
pub use conversation::{Conversation, DenialReply, DialogueAction, PermissionRequest, PermissionSource};
pub use digest::program_digest;
pub use engine::{Assignment, Engine, EngineError, Launch, OutputReader};
pub use lines::{LineSplitter, MAX_LINE, MAX_SAID};
pub use origin::{Origin, PYTHON_HOME, PYTHON_PACKAGES};
pub use package::{Build, Package};
pub use prompt::prompt;
pub use registry::Registry;
pub use session::{BadSessionId, Resume, SessionId};
pub use source::{Source, license_in};
pub use transcript::TranscriptReader;
pub use tree::tree_digest;
