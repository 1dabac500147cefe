//! The tools that a request offers: which of them the client runs, and which the upstream would run.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::reader::Reader;
use super::{Tool, ToolKind};
use crate::dialect::Dialect;
use crate::json::Kind;
use crate::reaches_out::Reach;
use crate::refusal::Refusal;

/// The fields of one tool, in any order.
#[derive(Debug, Default)]
struct Written<'a> {
    of: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    schema: Option<Range<usize>>,
    /// Whether it has the object that describes a function.
    function: bool,
    /// Whether it has tools inside.
    group: bool,
    /// Where it runs, if it says so.
    environment: Option<Cow<'a, str>>,
    /// Whether the client looks for tools, where that is what the tool does.
    client_searches: bool,
}

impl<'a> Reader<'a> {
    /// The list of tools. Those of `functions`, the older key, say no type.
    pub(super) fn tools(&mut self, functions: bool) -> Result<(), Refusal> {
        match self.scanner.kind()? {
            Kind::Null => self.scanner.skip().map(drop)?,
            Kind::Array => self.array(|reader, _| reader.tool(functions))?,
            _ => return Err(self.wrong("a list")),
        }
        Ok(())
    }

    fn tool(&mut self, function: bool) -> Result<(), Refusal> {
        if self.scanner.kind()? != Kind::Object {
            return Err(self.wrong("an object"));
        }
        let mut written = Written { function, ..Written::default() };
        self.object(|reader, key| reader.tool_key(key, &mut written))?;
        if written.of.as_deref().is_some_and(|of| of.starts_with("mcp")) {
            // The address of an MCP server is part of that reach, not a second one.
            self.withdraw_url("server_url");
        }
        self.sort(written);
        Ok(())
    }

    fn tool_key(&mut self, key: &str, written: &mut Written<'a>) -> Result<(), Refusal> {
        match key {
            "type" => written.of = self.string()?,
            "name" => written.name = self.string()?,
            "parameters" | "input_schema" => written.schema = Some(self.scanner.skip()?),
            "execution" => written.client_searches = self.string()?.as_deref() == Some("client"),
            "function" | "custom" if self.scanner.kind()? == Kind::Object => {
                written.function |= key == "function";
                // Only its name and schema: what it is, is said outside, and must not be said again in here.
                self.object(|reader, key| match key {
                    "name" | "parameters" => reader.tool_key(key, written),
                    _ => reader.find_urls(key),
                })?;
            }
            "environment" if self.scanner.kind()? == Kind::Object => self.object(|reader, key| {
                if key == "type" {
                    written.environment = reader.string()?;
                } else {
                    reader.find_urls(key)?;
                }
                Ok(())
            })?,
            "tools" if self.scanner.kind()? == Kind::Array => {
                written.group = true;
                self.tools(false)?;
            }
            _ => self.find_urls(key)?,
        }
        Ok(())
    }

    /// Decides what a tool is. A tool counts as hosted unless the client is known to run it.
    fn sort(&mut self, written: Written<'a>) {
        let of = written.of.as_deref();
        let local = written.environment.as_deref().is_none_or(|place| place == "local");
        let kind = match (self.dialect, of) {
            (Dialect::Chat | Dialect::Responses, Some("function"))
            | (Dialect::Messages, None | Some("custom")) => Kinds::Function,
            (Dialect::Chat, None) if written.function => Kinds::Function,
            (Dialect::Chat | Dialect::Responses, Some("custom")) => Kinds::Custom,
            (Dialect::Responses, Some("local_shell" | "shell" | "apply_patch")) if local => Kinds::BuiltIn,
            (Dialect::Responses, Some("tool_search")) if written.client_searches => Kinds::BuiltIn,
            (Dialect::Responses, Some("namespace")) if written.group => return,
            (Dialect::Messages, Some(of)) if is_run_by_clients(of) => Kinds::BuiltIn,
            (_, Some(of)) if of.starts_with("mcp") => return self.reaches(Reach::RemoteMcp, Some(of)),
            (_, of) => return self.reaches(Reach::HostedTool, of),
        };
        if !self.keeps {
            return;
        }
        let name = written.name.as_deref().or(of).unwrap_or_default().to_owned();
        let kind = match kind {
            Kinds::Function => ToolKind::Function { parameters: self.schema(written.schema) },
            Kinds::Custom => ToolKind::Custom,
            Kinds::BuiltIn => ToolKind::BuiltIn { of: of.unwrap_or_default().to_owned() },
        };
        self.tools.push(Tool { name, kind });
    }

    /// The schema as a value. One that cannot be held, such as with a number too large, says nothing.
    fn schema(&self, span: Option<Range<usize>>) -> Value {
        span.and_then(|span| serde_json::from_str(self.scanner.slice(span)).ok()).unwrap_or_default()
    }
}

/// The kinds of tools that clients run.
#[derive(Clone, Copy)]
enum Kinds {
    Function,
    Custom,
    BuiltIn,
}

/// The tools of Messages that Anthropic defines and clients run, by their names without the date.
fn is_run_by_clients(of: &str) -> bool {
    let Some((name, date)) = of.rsplit_once('_') else { return false };
    date.len() == 8
        && date.bytes().all(|b| b.is_ascii_digit())
        && matches!(name, "bash" | "text_editor" | "memory" | "computer")
}
