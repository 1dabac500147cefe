//! The dialogue with an agent that speaks the Agent Client Protocol: one session, one prompt, one answer.

use std::mem;

use herma_core::engine::EngineResult;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::calls::Calls;
use super::wire::{self, Incoming, Initialized, NewSession, Notified, Permission, Prompted, Update};
use crate::conversation::{Asking, Conversation, Question, Refusal, Turn};
use crate::engine::Said;
use crate::json_lines::malformed;

/// How much of a message is gathered before it is told: agents say theirs in pieces of a word.
const MOST_TEXT: usize = 64 << 10;

/// What is told of an agent that is to go on and cannot.
const CANNOT_LOAD: &str = "error: it does not offer `loadSession`, so that it cannot go on with a session: begin anew with \
                           `herma run`";

/// How far the dialogue is. The number is that of the request whose answer is awaited.
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
    /// The session that it goes on with, where it does not begin a new one.
    earlier: Option<String>,
    /// Whether it offers to go on with this one later.
    loads: bool,
    awaited: Awaited,
    /// The message that the agent is saying.
    message: String,
    calls: Calls,
}

/// What comes of a line.
#[derive(Default)]
struct Outcome {
    said: Vec<Said>,
    turns: Vec<Turn>,
}

impl AcpConversation {
    /// A dialogue in which the agent is told this, to work in this directory.
    #[must_use]
    pub fn new(prompt: String, workspace: String) -> Self {
        Self {
            prompt,
            workspace,
            earlier: None,
            loads: false,
            awaited: Awaited::Nothing,
            message: String::new(),
            calls: Calls::default(),
        }
    }

    /// The same in a session that the agent has from an earlier run.
    #[must_use]
    pub fn going_on(self, session: String) -> Self {
        Self { earlier: Some(session), ..self }
    }

    fn read(&mut self, message: Incoming) -> Result<Outcome, String> {
        let Incoming { id, method, params, result, error } = message;
        match (method.as_deref(), id) {
            (Some("session/update"), _) => self.notified(params),
            (Some("session/request_permission"), Some(id)) => self.asked(&id, params),
            (Some(_), Some(id)) => Ok(Outcome::of_turn(Turn::Say(wire::not_offered(&id)))),
            // Agents have notifications of their own.
            (Some(_), None) => Ok(Outcome::default()),
            (None, Some(id)) => self.answered(&id, result, error),
            (None, None) => Err("a message has neither a method nor an id".to_owned()),
        }
    }

    /// Hears the answer to a request of herma's.
    fn answered(
        &mut self,
        id: &Value,
        result: Option<Value>,
        error: Option<wire::Problem>,
    ) -> Result<Outcome, String> {
        match id.as_u64() {
            Some(number) if number == self.awaited as u64 && self.awaited < Awaited::Over => {}
            // It was answered before: once more says nothing more.
            Some(number) if number < self.awaited as u64 && number > 0 => return Ok(Outcome::default()),
            _ => return Err("the agent answers what it was not asked".to_owned()),
        }
        if let Some(problem) = error {
            return Ok(self.failed(problem.in_words()));
        }
        // Who goes on with a session has nothing to say of it.
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
                Ok(Outcome { said: vec![Said::Hello], turns: vec![Turn::Say(ask)] })
            }
            Awaited::Session => {
                let session_id = match self.earlier.take() {
                    Some(session) => session,
                    None => parse::<NewSession>(result)?.session_id,
                };
                self.awaited = Awaited::Prompted;
                let prompt = mem::take(&mut self.prompt);
                let turns = vec![
                    Turn::Farewell(wire::cancel(&session_id)),
                    Turn::Say(wire::prompt(Awaited::Prompted as u64, &session_id, &prompt)),
                ];
                let mut said = vec![Said::Session(session_id)];
                said.extend((!self.loads).then_some(Said::NoWayBack));
                Ok(Outcome { said, turns })
            }
            _ => {
                let Prompted { stop_reason, usage } = parse(result)?;
                let mut outcome = self.over();
                let used =
                    usage.map(|usage| Said::Used { input: usage.input_tokens, output: usage.output_tokens });
                outcome.said.extend(used);
                outcome.said.push(Said::Result(result_of(&stop_reason)));
                Ok(outcome)
            }
        }
    }

    fn notified(&mut self, params: Value) -> Result<Outcome, String> {
        let Notified { update } = parse(params)?;
        if self.awaited == Awaited::Session && self.earlier.is_some() {
            // It tells again what was said and done before.
            return Ok(Outcome::default());
        }
        let mut said = Vec::new();
        match update {
            Update::AgentMessageChunk { content } => {
                self.message.push_str(&content.text);
                if self.message.len() >= MOST_TEXT {
                    said.extend(self.whole_message());
                }
            }
            Update::ToolCall(call) | Update::ToolCallChanged(call) => {
                said.extend(self.whole_message());
                said.extend(self.calls.hear(call));
            }
            Update::Plan { entries } => {
                said.extend(self.whole_message());
                said.push(Said::Plan(entries.into_iter().map(|entry| entry.content).collect()));
            }
            Update::Other => {}
        }
        Ok(Outcome { said, turns: Vec::new() })
    }

    /// Hears that the agent asks for a permission. Only a yes for this once is one: herma wants to be asked again.
    fn asked(&mut self, id: &Value, params: Value) -> Result<Outcome, String> {
        let Permission { tool_call, options } = parse(params)?;
        let of = |kind: &str| {
            options.iter().find(|option| option.kind == kind).map(|option| option.option_id.as_str())
        };
        let yes = of("allow_once").map(|choice| wire::chosen(id, Some(choice)));
        let no = Refusal::Bare(wire::chosen(id, of("reject_once").or_else(|| of("reject_always"))));
        let said = self.whole_message().into_iter().collect();
        let (tool, command) = self.calls.asked(tool_call);
        let question = Question { tool, command, by: Asking::Agent, yes, no };
        Ok(Outcome { said, turns: vec![Turn::Answer(question)] })
    }

    fn failed(&mut self, why: String) -> Outcome {
        let mut outcome = self.over();
        outcome.said.extend([Said::Message(why), Said::Result(EngineResult::Failed)]);
        outcome
    }

    fn over(&mut self) -> Outcome {
        self.awaited = Awaited::Over;
        let mut said: Vec<Said> = self.whole_message().into_iter().collect();
        said.extend(self.calls.rest());
        Outcome { said, turns: vec![Turn::End] }
    }

    fn whole_message(&mut self) -> Option<Said> {
        let text = mem::take(&mut self.message);
        (!text.trim().is_empty()).then_some(Said::Message(text))
    }
}

impl Conversation for AcpConversation {
    fn open(&mut self) -> Vec<Turn> {
        self.awaited = Awaited::Initialized;
        vec![Turn::Say(wire::initialize(Awaited::Initialized as u64))]
    }

    fn hear(&mut self, line: &[u8]) -> (Option<Said>, Vec<Turn>) {
        let text = String::from_utf8_lossy(line.trim_ascii());
        let Ok(value) = serde_json::from_str::<Value>(&text) else { return (None, Vec::new()) };
        if value["jsonrpc"] != "2.0" {
            return (None, Vec::new());
        }
        // Who asked waits for an answer, also to what herma cannot read.
        let asked = (value["method"].is_string() && !value["id"].is_null()).then(|| value["id"].clone());
        match parse(value).and_then(|message| self.read(message)) {
            Ok(Outcome { said, turns }) => (Some(Said::All(said)), turns),
            Err(why) => {
                let answer = asked.map(|id| Turn::Say(wire::not_offered(&id)));
                (Some(Said::Malformed(why)), answer.into_iter().collect())
            }
        }
    }
}

impl Outcome {
    fn of_turn(turn: Turn) -> Self {
        Self { said: Vec::new(), turns: vec![turn] }
    }
}

/// Only a turn that the agent ended by itself is a completed one: not one that met a limit, was refused or cancelled.
fn result_of(stop_reason: &str) -> EngineResult {
    if stop_reason == "end_turn" { EngineResult::Completed } else { EngineResult::Failed }
}

fn parse<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| match malformed(&error) {
        Said::Malformed(why) => why,
        _ => String::new(),
    })
}
