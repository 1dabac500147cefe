//! The steps of a script. A script is a YAML file with a list of steps, each with one key:
//!
//! ```yaml
//! steps:
//!   - say: looking at the test
//!   - write: { path: src/a.txt, text: "hello\n" }
//!   - shell: { command: sh test.sh, must: true }
//! ```
//!
//! `fake` says hello when the first step that is not `sleep` begins. A step that fails is reported as a message and the
//! script goes on. A script without a `result` step ends with the result `completed`.

use herma_core::units::{Bytes, Span};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::ask::Ask;
use super::connect::Connect;
use super::values::{Permissions, ScriptPath, base64_bytes};

/// The steps of `fake`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// `write: { path, text }` or `write: { path, base64 }`: the file has this content, its directories are made.
    Write(Write),
    /// `append: { path, text }`: adds text to the end of a file, which is made if it is not there.
    Append(Append),
    /// `delete: PATH`: removes a file, a link, or a directory with everything in it.
    Delete(ScriptPath),
    /// `rename: { from, to }`: the directories of `to` are made.
    Rename(Rename),
    /// `chmod: { path, mode: "755" }`: sets the permissions.
    Chmod(Chmod),
    /// `symlink: { path, target }`: makes a symbolic link at `path`; the target need not be there.
    Symlink(Symlink),
    /// `mkdir: PATH`: makes a directory and those above it.
    Mkdir(ScriptPath),
    /// `fifo: PATH`: makes a named pipe.
    Fifo(ScriptPath),
    /// `shell: COMMAND` or `shell: { command, must: true }`: runs it with `sh -c` in the workspace. Its output is the
    /// engine's output. If it must succeed and fails, the script ends with the result `failed` and exit code 1.
    Shell(Shell),
    /// `ask: { prompt, dialect, stream, model, max_output, expect, must }`: asks the contract's model, or the one that is
    /// named, through the run's router, and says what came as a message. `dialect` is `chat`, `responses` or `messages`.
    /// It fails where the router cannot be reached or answers with another status than `expect`, or than 200 to 299.
    /// Where it must succeed and does not, the script ends as with `shell`. Only `prompt` has to be there.
    Ask(Ask),
    /// `connect: { to: HOST:PORT, must }`: asks the run's egress proxy for a tunnel, and says what it answered. It fails
    /// where there is no proxy or the tunnel is denied. Where it must succeed and does not, the script ends as with `shell`.
    Connect(Connect),
    /// `daemon: COMMAND`: starts it in a session of its own and leaves it running, with the engine's output open.
    Daemon(String),
    /// `say: TEXT`: a message.
    Say(String),
    /// `plan: [TEXT, ...]`: what it wants to do.
    Plan(Vec<String>),
    /// `tool: { name, command }`: says that it calls a tool, and calls nothing.
    Tool(Tool),
    /// `print: TEXT`: a line as it is, which need not be protocol.
    Print(String),
    /// `flood: { bytes: 8MiB }`: one line of that many bytes.
    Flood(Flood),
    /// `sleep: 2s`: does nothing for that long.
    Sleep(Span),
    /// `repeat: { times, steps }`: these steps, over and over.
    Repeat(Repeat),
    /// `exit: CODE`: ends at once with this exit code and no further word.
    Exit(u8),
    /// `result: completed`: says how the work went; the script goes on.
    Result(ResultWord),
}

/// The step `write`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WriteFields")]
pub struct Write {
    /// The path.
    pub path: ScriptPath,
    /// The content.
    pub bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFields {
    path: ScriptPath,
    text: Option<String>,
    base64: Option<String>,
}

impl TryFrom<WriteFields> for Write {
    type Error = String;

    fn try_from(fields: WriteFields) -> Result<Self, String> {
        let bytes = match (fields.text, fields.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(base64)) => base64_bytes(&base64)?,
            _ => return Err("`write` takes `path` and either `text` or `base64`".to_owned()),
        };
        Ok(Self { path: fields.path, bytes })
    }
}

/// The step `append`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// To which file.
    pub path: ScriptPath,
    /// The text.
    pub text: String,
}

/// The step `rename`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The old name.
    pub from: ScriptPath,
    /// The new name.
    pub to: ScriptPath,
}

/// The step `chmod`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chmod {
    /// Of what.
    pub path: ScriptPath,
    /// The new permissions.
    pub mode: Permissions,
}

/// The step `symlink`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symlink {
    /// The path of the link.
    pub path: ScriptPath,
    /// Its target.
    pub target: ScriptPath,
}

/// The step `shell`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The command.
    pub command: String,
    /// Whether the script ends where it fails.
    pub must: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellFields {
    command: String,
    #[serde(default)]
    must: bool,
}

impl<'de> Deserialize<'de> for Shell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        // By hand, because an untagged enum would not say which key is wrong.
        impl<'de> Visitor<'de> for Written {
            type Value = Shell;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a command, or { command, must }")
            }

            fn visit_str<E: Error>(self, command: &str) -> Result<Shell, E> {
                Ok(Shell { command: command.to_owned(), must: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shell, A::Error> {
                let fields = ShellFields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Shell { command: fields.command, must: fields.must })
            }
        }

        deserializer.deserialize_any(Written)
    }
}

/// The step `tool`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Which one.
    pub name: String,
    /// With what.
    pub command: String,
}

/// The step `flood`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// How many, before the line's end.
    pub bytes: Bytes,
}

/// The step `repeat`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often.
    pub times: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

/// The values of the step `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultWord {
    /// The work is done.
    Completed,
    /// It could not be done.
    Failed,
    /// The agent's own reviewer rejected it.
    Rejected,
    /// Nothing is said, also not at the end.
    None,
    /// Something that looks like a result and is none.
    Malformed,
}
