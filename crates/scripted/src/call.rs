//! The tool calls of a turn. A script names the intent; the tools that the client advertises determine the call.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One tool call of a script.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `shell: COMMAND`: runs it.
    Shell(String),
    /// `write: { path, text }`: the file has this content.
    Write(WriteFile),
    /// `edit: { path, old, new }`: the first `old` in the file becomes `new`.
    Edit(EditFile),
    /// `patch: TEXT`: applies it; a unified diff, or one that begins with `*** Begin Patch`.
    Patch(String),
    /// `read: PATH`: looks at a file.
    Read(String),
    /// `list: PATH`: looks at a directory.
    List(String),
    /// `tool: { name, arguments }` or `tool: { name, text }`: this tool, advertised or not, with exactly that.
    Tool(NamedTool),
}

/// The call `write`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// The file. The path can be anything, also absolute or with `..`: a script must be able to misbehave.
    pub path: String,
    /// The content.
    pub text: String,
}

/// The call `edit`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// The file.
    pub path: String,
    /// The text to replace.
    pub old: String,
    /// The new text.
    pub new: String,
}

/// The call `tool`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "NamedToolFields")]
pub struct NamedTool {
    /// Its name.
    pub name: String,
    /// Its input.
    pub input: ToolInput,
}

/// The input of a named tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    /// Arguments by name.
    Arguments(Map<String, Value>),
    /// A text as it is: the input of a freeform tool, or arguments that need not be JSON.
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedToolFields {
    name: String,
    arguments: Option<Map<String, Value>>,
    text: Option<String>,
}

impl TryFrom<NamedToolFields> for NamedTool {
    type Error = String;

    fn try_from(fields: NamedToolFields) -> Result<Self, String> {
        let input = match (fields.arguments, fields.text) {
            (Some(arguments), None) => ToolInput::Arguments(arguments),
            (None, Some(text)) => ToolInput::Text(text),
            _ => return Err("`tool` takes `name` and either `arguments` or `text`".to_owned()),
        };
        if fields.name.is_empty() {
            return Err("the name of a tool is not empty".to_owned());
        }
        Ok(Self { name: fields.name, input })
    }
}
