//! Which tool a call becomes.

use serde_json::Value;

use super::advertised::{self, Advertised, Form};
use super::arguments::Arguments;
use super::by_patch::{self, FileOperation, is_apply_patch};
use super::table::{KNOWN_TOOLS, PROVIDER_TOOLS, Part, runs_apply_patch};
use super::{Intent, by_shell, generic, without_patch};
use crate::call::{Call, NamedTool, ToolInput};
use herma_dialect::ModelRequest;

/// A call that a client can execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: Input,
}

/// The input of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The text of its arguments: JSON, unless the script says otherwise.
    Arguments(String),
    /// A text, for a freeform tool.
    Freeform(String),
    /// A command, for the provider's `local_shell`.
    LocalShell(String),
    /// A command, for the provider's `shell`.
    Shell(String),
    /// A change of one file, for the provider's `apply_patch`.
    ApplyPatch(FileOperation),
}

/// The result of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// These calls; more than one only where a patch has more than one file.
    Calls(Vec<ToolCall>),
    /// No tool that is advertised can do it; this says so.
    Unable(String),
}

/// The tool calls for `call` in this request.
#[must_use]
pub fn choose(call: &Call, request: &ModelRequest) -> Chosen {
    let tools = advertised::all(request);
    let chosen = match (call, Intent::of(call)) {
        (Call::Tool(tool), _) => Some(vec![named(tool, &tools)]),
        (_, Some(intent)) => by_intent(intent, call, &tools, &request.turns.text),
        (_, None) => None,
    };
    chosen.map_or_else(|| Chosen::Unable(unable(call)), Chosen::Calls)
}

/// The tool that the script names. That it is not advertised is the script's business.
fn named(tool: &NamedTool, tools: &[Advertised<'_>]) -> ToolCall {
    let freeform = tools.iter().any(|known| known.name == tool.name && matches!(known.form, Form::Freeform));
    let input = match &tool.input {
        ToolInput::Text(text) if freeform => Input::Freeform(text.clone()),
        ToolInput::Text(text) => Input::Arguments(text.clone()),
        ToolInput::Arguments(map) => Input::Arguments(serde_json::to_string(map).unwrap_or_default()),
    };
    ToolCall { name: tool.name.clone(), input }
}

fn by_intent(
    intent: Intent,
    call: &Call,
    tools: &[Advertised<'_>],
    conversation: &str,
) -> Option<Vec<ToolCall>> {
    let own = || by_tool_of_its_own(intent, call, tools, conversation);
    let shell = || {
        let command = Call::Shell(by_shell::command(call)?);
        by_tool_of_its_own(Intent::Shell, &command, tools, conversation)
    };
    match call {
        Call::Shell(_) => own(),
        // The tools for patches want their own form; a unified diff is for a shell.
        Call::Patch(patch) if !is_apply_patch(patch) => shell().or_else(own),
        Call::Patch(patch) => own()
            .or_else(|| shell().filter(|calls| calls.iter().all(|call| runs_apply_patch(&call.name))))
            .or_else(|| one_by_one(&without_patch::calls(patch), tools, conversation)),
        _ => own().or_else(shell).or_else(|| {
            let patch = Call::Patch(by_patch::patch(call)?);
            by_tool_of_its_own(Intent::Patch, &patch, tools, conversation)
        }),
    }
}

/// Several calls for one; none where one of them cannot be made.
fn one_by_one(calls: &[Call], tools: &[Advertised<'_>], conversation: &str) -> Option<Vec<ToolCall>> {
    let made = calls.iter().map(|call| by_intent(Intent::of(call)?, call, tools, conversation));
    let made = made.collect::<Option<Vec<Vec<ToolCall>>>>()?.concat();
    (!made.is_empty()).then_some(made)
}

fn by_tool_of_its_own(
    intent: Intent,
    call: &Call,
    tools: &[Advertised<'_>],
    conversation: &str,
) -> Option<Vec<ToolCall>> {
    by_table(intent, call, tools, conversation)
        .map(|known| vec![known])
        .or_else(|| tools.iter().find_map(|tool| by_provider(intent, call, tool)))
        .or_else(|| {
            tools.iter().find_map(|tool| by_schema(intent, call, tool, conversation)).map(|found| vec![found])
        })
}

fn by_table(intent: Intent, call: &Call, tools: &[Advertised<'_>], conversation: &str) -> Option<ToolCall> {
    KNOWN_TOOLS.iter().filter(|row| row.intent == intent).find_map(|row| {
        let fits = |tool: &&Advertised<'_>| {
            tool.name == row.tool
                && matches!(tool.form, Form::Function(schema) if generic::takes(schema, row.arguments))
        };
        let tool = tools.iter().find(fits)?;
        with_arguments(tool, call, row.arguments, conversation)
    })
}

/// Tools that are not functions: freeform ones, and those that a provider defines.
fn by_provider(intent: Intent, call: &Call, tool: &Advertised<'_>) -> Option<Vec<ToolCall>> {
    let one = |input| Some(vec![ToolCall { name: tool.name.to_owned(), input }]);
    match (tool.form, call) {
        (Form::Freeform, Call::Patch(patch)) if tool.name.contains("patch") => {
            one(Input::Freeform(patch.clone()))
        }
        (Form::Provider("local_shell"), Call::Shell(command)) => one(Input::LocalShell(command.clone())),
        (Form::Provider("shell"), Call::Shell(command)) => one(Input::Shell(command.clone())),
        (Form::Provider("apply_patch"), Call::Patch(patch)) => {
            let call =
                |operation| ToolCall { name: tool.name.to_owned(), input: Input::ApplyPatch(operation) };
            let calls: Vec<ToolCall> = by_patch::operations(patch).into_iter().map(call).collect();
            (!calls.is_empty()).then_some(calls)
        }
        (Form::Provider(kind), _) => {
            let row = PROVIDER_TOOLS.iter().find(|row| row.intent == intent && kind.starts_with(row.tool))?;
            let arguments = Arguments::of(call, row.arguments, &Value::Null, "")?;
            one(Input::Arguments(arguments.text()))
        }
        _ => None,
    }
}

fn by_schema(intent: Intent, call: &Call, tool: &Advertised<'_>, conversation: &str) -> Option<ToolCall> {
    let Form::Function(schema) = tool.form else { return None };
    let parts = generic::parts(intent, tool.name, schema)?;
    with_arguments(tool, call, &parts, conversation)
}

fn with_arguments(
    tool: &Advertised<'_>,
    call: &Call,
    parts: &[(&str, Part)],
    conversation: &str,
) -> Option<ToolCall> {
    let Form::Function(schema) = tool.form else { return None };
    let arguments = Arguments::of(call, parts, schema, conversation)?;
    Some(ToolCall { name: tool.name.to_owned(), input: Input::Arguments(arguments.text()) })
}

fn unable(call: &Call) -> String {
    let wanted = match call {
        Call::Shell(command) => format!("run `{command}`"),
        Call::Write(file) => format!("write `{}`", file.path),
        Call::Edit(file) => format!("edit `{}`", file.path),
        Call::Patch(_) => "apply a patch".to_owned(),
        Call::Read(path) => format!("read `{path}`"),
        Call::List(path) => format!("list `{path}`"),
        Call::Tool(tool) => format!("call `{}`", tool.name),
    };
    format!("The script wants to {wanted}, but the client advertises no tool that can.")
}
