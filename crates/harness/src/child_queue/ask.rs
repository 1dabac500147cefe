//! The messages about child runs at the run's socket.

use herma_core::engine::EngineName;
use herma_core::report::Entry;
use herma_core::{RepoPath, Report};
use serde::{Deserialize, Serialize};

/// The variable with the path of the run's socket, seen from inside. A changed path reaches nothing, or something inside.
pub const SOCKET_VARIABLE: &str = "HERMA_SOCKET";
/// The variable that says where the workspace is, seen from inside.
pub const WORKSPACE_VARIABLE: &str = "HERMA_WORKSPACE";

/// A request for a child run. It has no parent and no depth: the outer herma knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildAsk {
    /// The contract's text.
    pub contract: String,
    /// The engine.
    pub engine: EngineName,
    /// The script of `fake`.
    pub script: Option<String>,
}

/// The question at the socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    child_run: ChildAsk,
}

impl ChildAsk {
    /// The question as it goes over the socket.
    pub fn to_question(self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Question { child_run: self })
    }
}

/// A question at the run's socket, as far as it is about a child run.
#[derive(Debug)]
pub(crate) enum ChildQuestion {
    /// It asks for this child run.
    ChildRun(ChildAsk),
    /// It is about a child run and cannot be read.
    Malformed(serde_json::Error),
    /// It is about something else.
    Other,
}

/// Reads a question at the run's socket.
pub(crate) fn question(text: &[u8]) -> ChildQuestion {
    let asked: Result<Question, _> = serde_json::from_slice(text);
    match asked {
        Ok(question) => ChildQuestion::ChildRun(question.child_run),
        Err(why) => {
            let object = text.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
            if object.is_some_and(|object| object.starts_with(b"\"child_run\"")) {
                ChildQuestion::Malformed(why)
            } else {
                ChildQuestion::Other
            }
        }
    }
}

/// The answer of the outer herma.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildAnswer {
    /// There is no such run, for this reason.
    Refused(String),
    /// The run has ended.
    Ended {
        /// Its report.
        report: Box<Report>,
        /// Its changes, where it passed; none where they are too large to hand over.
        files: Option<Vec<HandedFile>>,
    },
}

/// A file that a child changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedFile {
    /// Where.
    pub path: RepoPath,
    /// The entry when the child began.
    pub old: Option<Entry>,
    /// The entry now; none where it is gone.
    pub new: Option<Entry>,
    /// Its content, or a link's target, in base64.
    pub content: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_and_nothing_can_be_added_to_it() {
        let ask = ChildAsk { contract: "c".to_owned(), engine: EngineName::fake(), script: None };
        let read = question(&ask.clone().to_question().unwrap());
        assert!(matches!(&read, ChildQuestion::ChildRun(asked) if *asked == ask), "{read:?}");
        for forged in ["depth", "parent", "parent_run", "run_id"] {
            let within = format!(r#"{{"child_run":{{"contract":"c","engine":"fake","{forged}":0}}}}"#);
            let beside = format!(r#" {{ "child_run":{{"contract":"c","engine":"fake"}},"{forged}":0}}"#);
            for text in [within, beside] {
                let ChildQuestion::Malformed(why) = question(text.as_bytes()) else { panic!("{text}") };
                assert!(why.to_string().contains(forged), "{why}");
            }
        }
        for text in ["", "{", "{}", "[]", r#"{"tool":"x"}"#, "\0"] {
            assert!(matches!(question(text.as_bytes()), ChildQuestion::Other), "{text}");
        }
    }
}
