//! Reads responses: the model, the usage, the stop reason, the tool calls. The same code reads whole bodies and the events of
//! a stream.

use crate::dialect::Dialect;
use crate::json::{Flaw, Kind, Scanner};
use crate::tool_calls::{self, Item, ToolCalls};
use crate::usage::{Counts, Doubt, Usage};

/// The longest name or code of an upstream that is kept. Truncating could leave a fragment of a secret that the redactor no
/// longer recognises.
const MAX_WORD: usize = 256;

/// The summary of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseSummary {
    /// The model that answered.
    pub model: Option<String>,
    /// The usage, if it is complete.
    pub usage: Option<Usage>,
    /// Why the usage is not believed, if it is not.
    pub doubt: Option<Doubt>,
    /// The stop reason, as the upstream names it: `stop`, `max_output_tokens`, `end_turn`.
    pub stop: Option<String>,
    /// How many calls of its client's tools it asks for.
    pub tool_calls: u64,
    /// Whether it is an error.
    pub error: bool,
}

/// The body is not what an answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the upstream's answer is not a JSON object, or counts tokens in a way that is not known")]
pub struct UnreadableResponse;

/// Reads the body of an answer that is not a stream. Completions and embeddings are read as chat.
pub fn read_response(dialect: Dialect, body: &[u8]) -> Result<ResponseSummary, UnreadableResponse> {
    let text = std::str::from_utf8(body).map_err(|_| UnreadableResponse)?;
    let mut reader = ResponseReader::new(dialect);
    reader.take(text)?;
    Ok(reader.summary())
}

/// Reads a response event by event.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    dialect: Dialect,
    model: Option<String>,
    counts: Counts,
    /// The counts that a later report must not lower.
    firm: Counts,
    /// Whether the chunk of a chat with nothing but the usage has come.
    has_usage_chunk: bool,
    is_contradictory: bool,
    stop: Option<String>,
    reason: Option<String>,
    tool_calls: ToolCalls,
    error: bool,
}

/// The properties of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Whether it is the last of a stream.
    pub(crate) is_last: bool,
    /// Whether it is an error.
    pub(crate) is_error: bool,
    has_usage: bool,
    /// How many choices it has, if it has a list of them.
    choices: Option<u64>,
    /// The output item that it is about, if there is one.
    item: Item,
}

impl Event {
    /// Whether it is the chunk of a chat that has nothing but the usage.
    pub(crate) fn is_usage_only(self) -> bool {
        self.has_usage && self.choices == Some(0) && !self.is_error
    }
}

/// In which object the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The event or body.
    Top,
    /// The object in it: `response`, `message`.
    Inner,
    /// A part of it that says why the answer ended: `choices[]`, `delta`, `incomplete_details`.
    Ending,
    /// A provider's own place that may have the usage.
    Extra,
}

impl ResponseReader {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            model: None,
            counts: Counts::default(),
            firm: Counts::default(),
            has_usage_chunk: false,
            is_contradictory: false,
            stop: None,
            reason: None,
            tool_calls: ToolCalls::default(),
            error: false,
        }
    }

    /// Reads one event or body.
    pub(crate) fn take(&mut self, text: &str) -> Result<Event, UnreadableResponse> {
        let (mut scanner, mut event) = (Scanner::new(text), Event::default());
        if scanner.kind()? != Kind::Object {
            return Err(UnreadableResponse);
        }
        self.object(&mut scanner, Place::Top, &mut event)?;
        scanner.end()?;
        self.error |= event.is_error;
        if event.is_usage_only() {
            self.is_contradictory |= std::mem::replace(&mut self.has_usage_chunk, true);
        }
        self.tool_calls.told(event.item);
        Ok(event)
    }

    /// The summary of all events.
    pub(crate) fn summary(self) -> ResponseSummary {
        ResponseSummary {
            usage: self.counts.usage(self.dialect),
            doubt: self.is_contradictory.then_some(Doubt::Contradictory),
            model: self.model,
            stop: self.reason.or(self.stop),
            tool_calls: self.tool_calls.count(),
            error: self.error,
        }
    }

    fn object(
        &mut self,
        scanner: &mut Scanner<'_>,
        place: Place,
        event: &mut Event,
    ) -> Result<(), UnreadableResponse> {
        scanner.enter()?;
        let mut first = true;
        while let Some(key) = scanner.next_key(first)? {
            first = false;
            self.key(scanner, &key.decode(), place, event)?;
        }
        Ok(())
    }

    fn key(
        &mut self,
        scanner: &mut Scanner<'_>,
        key: &str,
        place: Place,
        event: &mut Event,
    ) -> Result<(), UnreadableResponse> {
        let kind = scanner.kind()?;
        let of_answer = matches!(place, Place::Top | Place::Inner);
        match (key, kind) {
            ("type", Kind::String) if place == Place::Top => {
                let of = scanner.string()?.decode();
                event.is_last = self.is_last(&of);
                event.item.is_whole = of == "response.output_item.done";
                event.is_error |= matches!(&*of, "error" | "response.failed");
            }
            ("model", Kind::String) if of_answer && self.model.is_none() => self.model = Some(word(scanner)?),
            ("usage", Kind::Object) if place != Place::Ending => {
                let span = scanner.skip()?;
                let counts: Counts =
                    serde_json::from_str(scanner.slice(span)).map_err(|_| UnreadableResponse)?;
                // The output that Messages reports at the start of a stream is a guess, which the end may lower.
                let is_guess = self.dialect == Dialect::Messages && place == Place::Inner;
                let firm = if is_guess { counts.without_output() } else { counts };
                self.is_contradictory |= self.firm.is_lowered_by(&firm);
                self.firm.merge(firm);
                self.counts.merge(counts);
                event.has_usage = true;
            }
            ("error", Kind::Object | Kind::String) if of_answer => {
                scanner.skip()?;
                event.is_error = true;
            }
            ("status", Kind::String) if self.dialect == Dialect::Responses && of_answer => {
                let status = word(scanner)?;
                self.stop = Some(status).filter(|status| !matches!(&**status, "in_progress" | "queued"));
            }
            ("stop_reason", Kind::String) if self.dialect == Dialect::Messages => {
                self.stop = Some(word(scanner)?);
            }
            ("finish_reason", Kind::String) if place == Place::Ending => self.stop = Some(word(scanner)?),
            ("reason", Kind::String) if place == Place::Ending => self.reason = Some(word(scanner)?),
            ("response" | "message", Kind::Object) if place == Place::Top => {
                self.object(scanner, Place::Inner, event)?;
            }
            ("delta", Kind::Object) if place == Place::Top => self.object(scanner, Place::Ending, event)?,
            ("incomplete_details", Kind::Object) if of_answer => {
                self.object(scanner, Place::Ending, event)?;
            }
            ("x_groq", Kind::Object) if place == Place::Top => self.object(scanner, Place::Extra, event)?,
            ("choices", Kind::Array) if place == Place::Top => self.choices(scanner, event)?,
            ("item" | "content_block", Kind::Object) if place == Place::Top => {
                event.item.is_call = tool_calls::is_call(scanner)?;
            }
            ("output" | "content", Kind::Array) if of_answer => self.tool_calls.list(scanner)?,
            _ => scanner.skip().map(drop)?,
        }
        Ok(())
    }

    fn choices(&mut self, scanner: &mut Scanner<'_>, event: &mut Event) -> Result<(), UnreadableResponse> {
        scanner.enter()?;
        let mut choices = 0;
        while scanner.next_item(choices == 0)? {
            if scanner.kind()? == Kind::Object {
                self.choice(scanner, choices, event)?;
            } else {
                scanner.skip()?;
            }
            choices += 1;
        }
        event.choices = Some(choices);
        Ok(())
    }

    /// A choice. One that does not say its index has that of its place.
    fn choice(
        &mut self,
        scanner: &mut Scanner<'_>,
        place: u64,
        event: &mut Event,
    ) -> Result<(), UnreadableResponse> {
        let (mut index, mut calls, mut first) = (place, 0, true);
        scanner.enter()?;
        while let Some(key) = scanner.next_key(first)? {
            first = false;
            match (&*key.decode(), scanner.kind()?) {
                ("index", Kind::Number) => {
                    index = tool_calls::whole_number(scanner.number()?).unwrap_or(place);
                }
                ("delta" | "message", Kind::Object) => calls |= tool_calls::in_message(scanner)?,
                (key, _) => self.key(scanner, key, Place::Ending, event)?,
            }
        }
        self.tool_calls.of_choice(index, calls);
        Ok(())
    }

    /// Whether an event of this type ends a stream.
    fn is_last(&self, of: &str) -> bool {
        match self.dialect {
            Dialect::Chat => false,
            Dialect::Responses => {
                matches!(of, "response.completed" | "response.incomplete" | "response.failed")
            }
            Dialect::Messages => of == "message_stop",
        }
    }
}

impl From<Flaw> for UnreadableResponse {
    fn from(_: Flaw) -> Self {
        Self
    }
}

/// The string that comes next, as it is kept.
fn word(scanner: &mut Scanner<'_>) -> Result<String, Flaw> {
    let text = scanner.string()?.decode();
    Ok(if text.len() > MAX_WORD {
        format!("a word of {} bytes", text.len())
    } else if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        text.into_owned()
    } else {
        text.chars().filter(|c| !c.is_control()).collect()
    })
}
