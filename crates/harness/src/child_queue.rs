//! How an agent's herma asks for a child run: the questions at the run's socket, and the queue they wait in.

mod ask;
mod queue;

pub use ask::{ChildAnswer, ChildAsk, HandedFile, SOCKET_VARIABLE, WORKSPACE_VARIABLE};

pub(crate) use ask::{ChildQuestion, question};
pub(crate) use queue::{ChildRunQueue, WantedChild};
