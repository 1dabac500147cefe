//! Scripts, requests and answers for the tests.

use herma_dialect::{Dialect, ModelRequest};
use herma_scripted::{Answer, Scripted, StreamStep};
use serde_json::{Value, json};

/// All dialects.
pub(crate) const DIALECTS: [Dialect; 3] = [Dialect::Chat, Dialect::Responses, Dialect::Messages];

/// A script that must be one.
pub(crate) fn scripted(yaml: &str) -> Scripted {
    Scripted::parse(yaml.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{yaml}"))
}

/// A request as a client makes it.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) dialect: Dialect,
    pub(crate) stream: bool,
    /// Functions by name and schema.
    pub(crate) functions: Vec<(String, Value)>,
    /// Tools that are not functions, as the dialect writes them.
    pub(crate) others: Vec<Value>,
    pub(crate) prompt: String,
    /// How often the model spoke.
    pub(crate) answered: usize,
    /// More keys of the body.
    pub(crate) more: Value,
}

impl Request {
    /// A stream with a shell, at the beginning of the conversation.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            stream: true,
            functions: vec![function("bash", &["command"])],
            others: Vec::new(),
            prompt: "Fix slugify.".to_owned(),
            answered: 0,
            more: json!({}),
        }
    }

    pub(crate) fn whole(mut self) -> Self {
        self.stream = false;
        self
    }

    pub(crate) fn answered(mut self, answered: usize) -> Self {
        self.answered = answered;
        self
    }

    pub(crate) fn prompt(mut self, prompt: &str) -> Self {
        prompt.clone_into(&mut self.prompt);
        self
    }

    pub(crate) fn without_tools(mut self) -> Self {
        self.functions.clear();
        self.others.clear();
        self
    }

    pub(crate) fn tools(mut self, functions: Vec<(String, Value)>, others: Vec<Value>) -> Self {
        (self.functions, self.others) = (functions, others);
        self
    }

    pub(crate) fn with(mut self, more: Value) -> Self {
        self.more = more;
        self
    }

    /// As the router reads it.
    pub(crate) fn asked(&self) -> ModelRequest {
        let body = serde_json::to_vec(&self.body()).unwrap();
        herma_dialect::read_request(self.dialect, &body).unwrap_or_else(|e| panic!("{e:?}"))
    }

    fn body(&self) -> Value {
        let mut tools: Vec<Value> =
            self.functions.iter().map(|(name, schema)| self.function(name, schema)).collect();
        tools.extend(self.others.iter().cloned());
        let mut turns = vec![json!({ "role": "user", "content": self.prompt })];
        for n in 0..self.answered {
            turns.push(json!({ "role": "assistant", "content": format!("answer {n}") }));
            turns.push(json!({ "role": "user", "content": "go on" }));
        }
        let mut body = json!({ "model": "test-model", "stream": self.stream });
        if !tools.is_empty() {
            body["tools"] = Value::Array(tools);
        }
        match self.dialect {
            Dialect::Chat | Dialect::Messages => body["messages"] = Value::Array(turns),
            Dialect::Responses => body["input"] = Value::Array(turns),
        }
        for (key, value) in self.more.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    }

    fn function(&self, name: &str, schema: &Value) -> Value {
        match self.dialect {
            Dialect::Chat => {
                json!({ "type": "function", "function": { "name": name, "parameters": schema } })
            }
            Dialect::Responses => json!({ "type": "function", "name": name, "parameters": schema }),
            Dialect::Messages => json!({ "name": name, "input_schema": schema }),
        }
    }

    /// The answer of the script.
    pub(crate) fn answer(&self, script: &Scripted) -> Answer {
        script.answer(self.dialect, &self.asked())
    }
}

/// A function whose arguments are texts, all of them required.
pub(crate) fn function(name: &str, arguments: &[&str]) -> (String, Value) {
    let properties: Value =
        arguments.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    (name.to_owned(), json!({ "type": "object", "properties": properties, "required": arguments }))
}

/// The bytes of a whole answer.
pub(crate) fn body(answer: &Answer) -> Value {
    let Answer::Whole { body, .. } = answer else { panic!("not whole: {answer:?}") };
    serde_json::from_slice(body).unwrap()
}

/// The bytes of a stream that ends by itself.
pub(crate) fn streamed(answer: &Answer) -> String {
    let Answer::Stream { steps, .. } = answer else { panic!("no stream: {answer:?}") };
    let bytes = steps.iter().flat_map(|step| match step {
        StreamStep::Bytes(bytes) => bytes.clone(),
        StreamStep::Wait(_) => Vec::new(),
        other => panic!("the stream does not end: {other:?}"),
    });
    String::from_utf8(bytes.collect()).unwrap()
}

/// The answer for people to read.
pub(crate) fn shown(answer: &Answer) -> String {
    let head = |status: u16, headers: &[(&str, String)], after: String| {
        let headers: String = headers.iter().flat_map(|(name, value)| [name, ": ", value, "\n"]).collect();
        format!("{status} after {after}\n{headers}\n")
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match answer {
        Answer::Error { status, headers, body, after } => {
            format!("{}{}\n", head(*status, headers, after.to_string()), text(body))
        }
        Answer::Whole { headers, body, after } => {
            format!("{}{}\n", head(200, headers, after.to_string()), text(body))
        }
        Answer::Stream { headers, first_byte_after, steps } => {
            let steps = steps.iter().map(|step| match step {
                StreamStep::Bytes(bytes) => text(bytes),
                StreamStep::Wait(span) => format!("(wait {span})\n"),
                StreamStep::Cut => "(cut)\n".to_owned(),
                StreamStep::Forever { every, bytes } => format!("(forever, every {every})\n{}", text(bytes)),
            });
            format!("{}{}", head(200, headers, first_byte_after.to_string()), steps.collect::<String>())
        }
    }
}
