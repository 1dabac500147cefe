//! Requests for the tests.

use herma_core::Stage;
use herma_core::contract::Action;
use herma_core::tool::{ToolAction, ToolCall};
use herma_policy::{Policies, PolicyDecision, PolicyFile, PolicyRequester};

pub(crate) fn file(text: &str) -> PolicyFile {
    PolicyFile { name: "own.cedar".to_owned(), text: text.to_owned() }
}

pub(crate) fn asker(stage: u8) -> PolicyRequester {
    PolicyRequester {
        run: None,
        engine: "claude".parse().unwrap(),
        contract: "fix-it".to_owned(),
        above: Vec::new(),
        stage: Stage::try_from(stage).unwrap(),
        forbidden: Action::BUILT_IN.into(),
        network: false,
    }
}

pub(crate) fn call(action: ToolAction, subject: &str) -> ToolCall {
    ToolCall { tool: action.as_str().to_owned(), action, subject: subject.to_owned() }
}

pub(crate) fn decide(policies: &Policies, stage: u8, action: ToolAction, subject: &str) -> PolicyDecision {
    policies.decide(&asker(stage), &call(action, subject))
}
