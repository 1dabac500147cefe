//! Judges answers.

use serde_json::Value;

use super::capabilities::Support;
use super::exchange::{Reply, Streamed};
use super::question::{ARGUMENT, TOOL};
use super::shape::Call;

/// The judgement of an answer to the small question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Yes,
    ReasoningOnly,
    No(&'static str),
}

pub(super) fn content(reply: &Reply) -> Content {
    let shape = &reply.shape;
    if shape.refuses {
        Content::No("the model refused to answer a harmless question")
    } else if shape.says_something() {
        Content::Yes
    } else if !shape.calls.is_empty() {
        Content::No("the model called a tool that it was not given")
    } else if reply.reasoned() {
        Content::ReasoningOnly
    } else {
        Content::No("the answer is empty")
    }
}

pub(super) fn streaming(streamed: &Streamed) -> Support {
    let Streamed { reply, wrong } = streamed;
    match (wrong, content(reply)) {
        (Some(wrong), _) => Support::No(wrong.clone()),
        (None, Content::Yes) => Support::Yes,
        (None, Content::ReasoningOnly) => Support::No("the stream has reasoning and no content".to_owned()),
        (None, Content::No(why)) => Support::No(format!("a stream came, but {why}")),
    }
}

pub(super) fn tool_calls(reply: &Reply) -> Support {
    let shape = &reply.shape;
    let why = if let Some(wrong) = shape.calls.iter().find_map(wrong) {
        wrong
    } else if !shape.calls.is_empty() {
        return Support::Yes;
    } else if shape.refuses {
        "the model refused to call the tool that it was given"
    } else if shape.says_something() {
        "the model answered in words and did not call the tool that it was given"
    } else if reply.reasoned() {
        "the model answered with reasoning and called no tool"
    } else {
        "the model called no tool: the answer is empty"
    };
    Support::No(why.to_owned())
}

/// The flaw of a tool call.
fn wrong(call: &Call) -> Option<&'static str> {
    if call.name != TOOL {
        return Some("the model called a tool that it was not given");
    }
    match call.arguments.as_ref().map(Value::as_object) {
        None => Some("the arguments of the tool call are not JSON"),
        Some(None) => Some("the arguments of the tool call are not a JSON object"),
        Some(Some(arguments)) if !arguments.get(ARGUMENT).is_some_and(Value::is_string) => {
            Some("the arguments of the tool call are not those that the tool takes")
        }
        Some(Some(_)) => None,
    }
}
