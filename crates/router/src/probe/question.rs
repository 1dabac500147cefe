//! The questions of a probe: the smallest request of each API. The three questions differ, so that a script can answer each
//! in its own way.

use serde_json::{Value, json};

use herma_dialect::Dialect;

/// The tool that the model is given. It is never run. A coding agent has one like it.
pub const TOOL: &str = "run_command";

/// The one argument of the tool.
pub(super) const ARGUMENT: &str = "command";

/// The texts of the questions, by which a script recognises them.
pub const PROMPTS: [&str; 3] = [
    "Answer with the one word: ready",
    "Count from one to five, in words, on one line.",
    "Call the tool run_command once, with the command: echo ready. Say nothing else.",
];

/// A question to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// To be answered in words.
    Content,
    /// The same, as a stream.
    Stream,
    /// To be answered with a call of the tool.
    Tool {
        /// Whether the request forces the call. Not every model supports that.
        must: bool,
    },
}

impl Question {
    fn prompt(self) -> &'static str {
        let [content, stream, tool] = PROMPTS;
        match self {
            Self::Content => content,
            Self::Stream => stream,
            Self::Tool { .. } => tool,
        }
    }

    /// The body of the request.
    pub(super) fn body(self, dialect: Dialect, model: &str, output: u64) -> Vec<u8> {
        let mut body = match dialect {
            Dialect::Chat => json!({
                "model": model,
                "max_completion_tokens": output,
                "messages": [{"role": "user", "content": self.prompt()}],
            }),
            // An answer that the provider keeps is one that herma does not see.
            Dialect::Responses => json!({
                "model": model,
                "max_output_tokens": output,
                "input": self.prompt(),
                "store": false,
            }),
            Dialect::Messages => json!({
                "model": model,
                "max_tokens": output,
                "messages": [{"role": "user", "content": self.prompt()}],
            }),
        };
        match self {
            Self::Content => {}
            Self::Stream => {
                body["stream"] = Value::Bool(true);
                if dialect == Dialect::Chat {
                    // The router asks for the usage anyway, and would then hide it.
                    body["stream_options"] = json!({"include_usage": true});
                }
            }
            Self::Tool { must } => {
                body["tools"] = json!([tool(dialect)]);
                if must {
                    body["tool_choice"] = must_call(dialect);
                }
            }
        }
        body.to_string().into_bytes()
    }
}

fn tool(dialect: Dialect) -> Value {
    let description = "Runs a command and gives what it printed.";
    let schema = json!({
        "type": "object",
        "properties": {ARGUMENT: {"type": "string", "description": "The command."}},
        "required": [ARGUMENT],
        "additionalProperties": false,
    });
    match dialect {
        Dialect::Chat => json!({
            "type": "function",
            "function": {"name": TOOL, "description": description, "parameters": schema},
        }),
        Dialect::Responses => json!({
            "type": "function",
            "name": TOOL,
            "description": description,
            "parameters": schema,
        }),
        Dialect::Messages => json!({"name": TOOL, "description": description, "input_schema": schema}),
    }
}

fn must_call(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Responses => json!("required"),
        Dialect::Messages => json!({"type": "any"}),
    }
}
