//! The dialogue with an ACP agent: one session, one prompt, one result.

use std::mem;

use herma_core::engine::EngineResult;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::calls::AcpCallLog;
use super::wire::{self, AcpMessage, Initialized, NewSession, Notified, Permission, Prompted, Update};
use crate::agent_event::AgentEvent;
use crate::conversation::{Conversation, DenialReply, DialogueAction, PermissionRequest, PermissionSource};
use crate::json_lines::malformed;

/// The amount of text that is buffered before it is reported: agents stream fragments of words.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The error for an agent that cannot resume a session.
const CANNOT_LOAD: &str = "error: it does not offer `loadSession`, so that it cannot go on with a session: begin anew with \
                           `herma run`";

/// The state of the dialogue. The number is the id of the pending request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    Nothing = 0,
    Initialized = 1,
    Session = 2,
    Prompted = 3,
    Over = 4,
}

/// The dialogue of one run.
#[derive(Debug)]
pub struct AcpConversation {
    prompt: String,
    workspace: String,
    /// The session to resume, if any.
    earlier: Option<String>,
    /// Whether the agent can resume this session later.
    loads: bool,
    awaited: Awaited,
    /// The message that the agent is streaming.
    message: String,
    calls: AcpCallLog,
}

/// The outcome of a line.
#[derive(Default)]
struct PromptOutcome {
    said: Vec<AgentEvent>,
    turns: Vec<DialogueAction>,
}

impl AcpConversation {
    /// A dialogue with this prompt, in this working directory.
    #[must_use]
    pub fn new(prompt: String, workspace: String) -> Self {
        Self {
            prompt,
            workspace,
            earlier: None,
            loads: false,
            awaited: Awaited::Nothing,
            message: String::new(),
            calls: AcpCallLog::default(),
        }
    }

    /// The same in a session of an earlier run.
    #[must_use]
    pub fn going_on(self, session: String) -> Self {
        Self { earlier: Some(session), ..self }
    }

    fn read(&mut self, message: AcpMessage) -> Result<PromptOutcome, String> {
        let AcpMessage { id, method, params, result, error } = message;
        match (method.as_deref(), id) {
            (Some("session/update"), _) => self.notified(params),
            (Some("session/request_permission"), Some(id)) => self.asked(&id, params),
            (Some(_), Some(id)) => Ok(PromptOutcome::of_turn(DialogueAction::Say(wire::not_offered(&id)))),
            // Agents have notifications of their own.
            (Some(_), None) => Ok(PromptOutcome::default()),
            (None, Some(id)) => self.answered(&id, result, error),
            (None, None) => Err("a message has neither a method nor an id".to_owned()),
        }
    }

    /// Handles the response to a request of herma's.
    fn answered(
        &mut self,
        id: &Value,
        result: Option<Value>,
        error: Option<wire::AcpError>,
    ) -> Result<PromptOutcome, String> {
        match id.as_u64() {
            Some(number) if number == self.awaited as u64 && self.awaited < Awaited::Over => {}
            // A duplicate response adds nothing.
            Some(number) if number < self.awaited as u64 && number > 0 => return Ok(PromptOutcome::default()),
            _ => return Err("the agent answers what it was not asked".to_owned()),
        }
        if let Some(problem) = error {
            return Ok(self.failed(problem.in_words()));
        }
        // The response of `session/load` has no session id.
        let loaded = self.awaited == Awaited::Session && self.earlier.is_some();
        let nothing = loaded.then_some(Value::Null);
        let result = result.or(nothing).ok_or("an answer has neither a result nor an error")?;
        match self.awaited {
            Awaited::Initialized => {
                let Initialized { protocol_version, agent_capabilities } = parse(result)?;
                if protocol_version != wire::VERSION {
                    let why = format!("error: it speaks version {protocol_version} of the protocol, herma 1");
                    return Ok(self.failed(why));
                }
                self.loads = agent_capabilities.load_session;
                let number = Awaited::Session as u64;
                let ask = match &self.earlier {
                    None => wire::new_session(number, &self.workspace),
                    Some(session) if self.loads => wire::load_session(number, session, &self.workspace),
                    Some(_) => return Ok(self.failed(CANNOT_LOAD.to_owned())),
                };
                self.awaited = Awaited::Session;
                Ok(PromptOutcome { said: vec![AgentEvent::Hello], turns: vec![DialogueAction::Say(ask)] })
            }
            Awaited::Session => {
                let session_id = match self.earlier.take() {
                    Some(session) => session,
                    None => parse::<NewSession>(result)?.session_id,
                };
                self.awaited = Awaited::Prompted;
                let prompt = mem::take(&mut self.prompt);
                let turns = vec![
                    DialogueAction::ShutdownMessage(wire::cancel(&session_id)),
                    DialogueAction::Say(wire::prompt(Awaited::Prompted as u64, &session_id, &prompt)),
                ];
                let mut said = vec![AgentEvent::Session(session_id)];
                said.extend((!self.loads).then_some(AgentEvent::NoWayBack));
                Ok(PromptOutcome { said, turns })
            }
            _ => {
                let Prompted { stop_reason, usage } = parse(result)?;
                let mut outcome = self.over();
                let used = usage
                    .map(|usage| AgentEvent::Used { input: usage.input_tokens, output: usage.output_tokens });
                outcome.said.extend(used);
                outcome.said.push(AgentEvent::Result(result_of(&stop_reason)));
                Ok(outcome)
            }
        }
    }

    fn notified(&mut self, params: Value) -> Result<PromptOutcome, String> {
        let Notified { update } = parse(params)?;
        if self.awaited == Awaited::Session && self.earlier.is_some() {
            // It replays the history.
            return Ok(PromptOutcome::default());
        }
        let mut said = Vec::new();
        match update {
            Update::AgentMessageChunk { content } => {
                self.message.push_str(&content.text);
                if self.message.len() >= MAX_TEXT_BYTES {
                    said.extend(self.whole_message());
                }
            }
            Update::ToolCall(call) | Update::ToolCallChanged(call) => {
                said.extend(self.whole_message());
                said.extend(self.calls.hear(call));
            }
            Update::Plan { entries } => {
                said.extend(self.whole_message());
                said.push(AgentEvent::Plan(entries.into_iter().map(|entry| entry.content).collect()));
            }
            Update::Other => {}
        }
        Ok(PromptOutcome { said, turns: Vec::new() })
    }

    /// Handles a permission request. Only "allow once" allows: herma decides each call.
    fn asked(&mut self, id: &Value, params: Value) -> Result<PromptOutcome, String> {
        let Permission { tool_call, options } = parse(params)?;
        let of = |kind: &str| {
            options.iter().find(|option| option.kind == kind).map(|option| option.option_id.as_str())
        };
        let yes = of("allow_once").map(|choice| wire::chosen(id, Some(choice)));
        let no = DenialReply::Bare(wire::chosen(id, of("reject_once").or_else(|| of("reject_always"))));
        let said = self.whole_message().into_iter().collect();
        let (tool, command) = self.calls.asked(tool_call);
        let question = PermissionRequest { tool, command, by: PermissionSource::Agent, yes, no };
        Ok(PromptOutcome { said, turns: vec![DialogueAction::Answer(question)] })
    }

    fn failed(&mut self, why: String) -> PromptOutcome {
        let mut outcome = self.over();
        outcome.said.extend([AgentEvent::Message(why), AgentEvent::Result(EngineResult::Failed)]);
        outcome
    }

    fn over(&mut self) -> PromptOutcome {
        self.awaited = Awaited::Over;
        let mut said: Vec<AgentEvent> = self.whole_message().into_iter().collect();
        said.extend(self.calls.rest());
        PromptOutcome { said, turns: vec![DialogueAction::End] }
    }

    fn whole_message(&mut self) -> Option<AgentEvent> {
        let text = mem::take(&mut self.message);
        (!text.trim().is_empty()).then_some(AgentEvent::Message(text))
    }
}

impl Conversation for AcpConversation {
    fn open(&mut self) -> Vec<DialogueAction> {
        self.awaited = Awaited::Initialized;
        vec![DialogueAction::Say(wire::initialize(Awaited::Initialized as u64))]
    }

    fn hear(&mut self, line: &[u8]) -> (Option<AgentEvent>, Vec<DialogueAction>) {
        let text = String::from_utf8_lossy(line.trim_ascii());
        let Ok(value) = serde_json::from_str::<Value>(&text) else { return (None, Vec::new()) };
        if value["jsonrpc"] != "2.0" {
            return (None, Vec::new());
        }
        // The agent waits for a response, also to a request that herma cannot parse.
        let asked = (value["method"].is_string() && !value["id"].is_null()).then(|| value["id"].clone());
        match parse(value).and_then(|message| self.read(message)) {
            Ok(PromptOutcome { said, turns }) => (Some(AgentEvent::All(said)), turns),
            Err(why) => {
                let answer = asked.map(|id| DialogueAction::Say(wire::not_offered(&id)));
                (Some(AgentEvent::Malformed(why)), answer.into_iter().collect())
            }
        }
    }
}

impl PromptOutcome {
    fn of_turn(turn: DialogueAction) -> Self {
        Self { said: Vec::new(), turns: vec![turn] }
    }
}

/// Only `end_turn` counts as completed: not a limit, refusal or cancellation.
fn result_of(stop_reason: &str) -> EngineResult {
    if stop_reason == "end_turn" { EngineResult::Completed } else { EngineResult::Failed }
}

fn parse<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| match malformed(&error) {
        AgentEvent::Malformed(why) => why,
        _ => String::new(),
    })
}
