//! The result of the engine step.

use herma_core::contract::Action;
use herma_core::engine::EngineExit;
use herma_core::tool::ToolUse;
use herma_engines::SessionId;
use serde::{Deserialize, Serialize};

use crate::journal::StepResult;

/// herma's observations of the engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EngineResults {
    pub(crate) started: bool,
    /// The model calls before the engine was started: those are herma's own.
    pub(crate) own_model_calls: u64,
    pub(crate) exit: Option<EngineExit>,
    /// The limit that the engine met, or the cause of its end, where its exit does not say that.
    pub(crate) ended: Option<String>,
    pub(crate) protocol_error: Option<String>,
    /// The agent's name for its session.
    pub(crate) session: Option<SessionId>,
    /// The forbidden actions that its tool calls attempted.
    pub(crate) actions: Vec<Action>,
    /// The tool calls that it asked about; none for an engine that does not ask.
    pub(crate) tools: Option<ToolUse>,
}

impl StepResult for EngineResults {
    const KEY: &'static str = "engine";
}

impl EngineResults {
    /// Adds forbidden actions, each once.
    pub(crate) fn attempted(&mut self, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            if !self.actions.contains(&action) {
                self.actions.push(action);
            }
        }
    }

    /// Counts a tool call that the engine asked about.
    pub(crate) fn count_asked(&mut self, allowed: bool) {
        if let Some(tools) = &mut self.tools {
            tools.asked += 1;
            tools.denied += u64::from(!allowed);
        }
    }

    /// Counts a tool call that the engine reported without having asked in a dialogue.
    pub(crate) fn count_told(&mut self) {
        if let Some(tools) = &mut self.tools {
            tools.unasked += 1;
        }
    }

    /// Counts a tool call that its hook asked about. The agent reports that call too.
    pub(crate) fn count_hooked(&mut self, allowed: bool) {
        self.count_asked(allowed);
        if let Some(tools) = &mut self.tools {
            tools.unasked = tools.unasked.saturating_sub(1);
        }
    }
}
