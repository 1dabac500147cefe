//! The conversation in a request: its turns, and the parts that the upstream would fetch.

use std::borrow::Cow;

use super::ToolResult;
use super::reader::Reader;
use crate::dialect::Dialect;
use crate::json::{Kind, Text};
use crate::reaches_out::{self, Reach};
use crate::refusal::Refusal;

/// One message or item, as far as it is read.
#[derive(Debug, Default)]
struct Item<'a> {
    role: Option<Cow<'a, str>>,
    of: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    call_id: Option<Cow<'a, str>>,
    text: String,
    results: Vec<ToolResult>,
    calls: Vec<String>,
}

/// The parts that quote a URL which was fetched in an earlier turn.
const QUOTES: &[&str] =
    &["url_citation", "web_fetch_result", "web_search_result", "web_search_result_location"];

/// Whether a string is text of the turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    Text,
    Other,
}

impl<'a> Reader<'a> {
    /// The text before the conversation: the system prompt.
    pub(super) fn preamble(&mut self) -> Result<(), Refusal> {
        let mut item = Item::default();
        self.value(&mut item, Strings::Text)?;
        self.said(&item.text);
        Ok(())
    }

    /// The messages or items, or the one text that Responses also takes.
    pub(super) fn conversation(&mut self) -> Result<(), Refusal> {
        if self.scanner.kind()? != Kind::Array {
            return self.preamble();
        }
        let mut model_spoke = false;
        self.array(|reader, _| {
            let mut item = Item::default();
            if reader.scanner.kind()? == Kind::Object {
                reader.object(|reader, key| reader.item_key(key, &mut item))?;
            } else {
                // A list of texts or tokens, as embeddings take it.
                reader.value(&mut item, Strings::Text)?;
            }
            if reader.dialect == Dialect::Responses && item.is_reference() {
                reader.reaches(Reach::StoredConversation, Some("item_reference"));
            }
            if reader.keeps {
                model_spoke = reader.turn(item, model_spoke);
            }
            Ok(())
        })
    }

    /// Adds a message or item to the turns. Returns whether it is a turn of the model.
    fn turn(&mut self, item: Item<'a>, model_spoke: bool) -> bool {
        let of = item.of.as_deref().unwrap_or_default();
        let responses = self.dialect == Dialect::Responses;
        let by_model = item.role.as_deref() == Some("assistant")
            || (responses && item.role.is_none() && (of == "reasoning" || of.ends_with("_call")));
        if by_model {
            // One turn of Responses is several items: reasoning, a message, calls.
            self.turns.answered += usize::from(!(responses && model_spoke));
            self.turns.last_tool_results.clear();
            self.turns.calls.extend(item.calls);
            if responses && of.ends_with("_call") {
                self.turns.calls.extend(item.call_id.or(item.id).map(Cow::into_owned));
            }
            return true;
        }
        self.said(&item.text);
        self.turns.last_tool_results.extend(item.results);
        let is_result = matches!(item.role.as_deref(), Some("tool" | "function")) || of.ends_with("_output");
        if is_result {
            let call_id = item.call_id.or(item.id).unwrap_or_default().into_owned();
            self.turns.last_tool_results.push(ToolResult { call_id, text: item.text });
        }
        false
    }

    fn said(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.turns.text.is_empty() {
                self.turns.text.push('\n');
            }
            self.turns.text.push_str(text);
        }
    }

    /// One key of a message or item.
    fn item_key(&mut self, key: &str, item: &mut Item<'a>) -> Result<(), Refusal> {
        match key {
            "role" => item.role = self.string()?,
            "type" => item.of = self.string()?,
            "id" => item.id = self.string()?,
            "call_id" | "tool_call_id" => item.call_id = self.string()?,
            // The older results of functions go by the function's name.
            "name" => {
                let name = self.string()?;
                item.call_id = item.call_id.take().or(name);
            }
            _ => self.inner_key(key, item)?,
        }
        Ok(())
    }

    /// One key inside a message or item. Unknown keys are searched too: they may hold a URL.
    fn inner_key(&mut self, key: &str, item: &mut Item<'a>) -> Result<(), Refusal> {
        match key {
            "text" | "content" | "output" | "stdout" | "stderr" => self.value(item, Strings::Text),
            "image_url" | "video_url" | "audio_url" | "file_url" => self.url(item),
            _ if key != "url" && reaches_out::names_url(key) => self.url(item),
            "file_data" => {
                if self.is_remote(item)? {
                    self.reaches(Reach::RemoteUrl, None);
                }
                Ok(())
            }
            "file_id" => self.stored_file(),
            "source" => self.source(item),
            "tools" if self.scanner.kind()? == Kind::Array => self.tools(false),
            // Earlier calls and quotes of the model are data of the client by now; nothing fetches them.
            "input" | "arguments" | "action" | "annotations" | "citations" => {
                self.scanner.skip().map(drop).map_err(Refusal::from)
            }
            _ => self.value(item, Strings::Other),
        }
    }

    fn value(&mut self, item: &mut Item<'a>, strings: Strings) -> Result<(), Refusal> {
        match self.scanner.kind()? {
            Kind::Object => self.part(item),
            Kind::Array => self.array(|reader, _| reader.value(item, strings)),
            Kind::String if strings == Strings::Text && self.keeps => {
                let text = self.scanner.string()?;
                item.push(text);
                Ok(())
            }
            _ => self.scanner.skip().map(drop).map_err(Refusal::from),
        }
    }

    /// A part of the content, or any other object in it.
    fn part(&mut self, item: &mut Item<'a>) -> Result<(), Refusal> {
        let (mut of, mut id, mut fetched, start) = (None, None, false, item.text.len());
        self.object(|reader, key| {
            match key {
                "type" => of = reader.string()?,
                "id" | "tool_use_id" => id = reader.string()?,
                "url" | "image" | "video" | "audio" => fetched |= reader.is_remote(item)?,
                _ => reader.inner_key(key, item)?,
            }
            Ok(())
        })?;
        if fetched && !of.as_deref().is_some_and(|of| QUOTES.contains(&of)) {
            self.reaches(Reach::RemoteUrl, None);
        }
        if !self.keeps {
            return Ok(());
        }
        match (of.as_deref(), id) {
            (Some("tool_result"), id) => {
                let text = item.text[start..].trim_start_matches('\n').to_owned();
                item.results.push(ToolResult { call_id: id.unwrap_or_default().into_owned(), text });
            }
            (Some("tool_use" | "function" | "custom"), Some(id)) => item.calls.push(id.into_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Where an image or a document comes from.
    fn source(&mut self, item: &mut Item<'a>) -> Result<(), Refusal> {
        match self.scanner.kind()? {
            Kind::Object => self.object(|reader, key| match key {
                "url" => reader.url(item),
                _ => reader.inner_key(key, item),
            }),
            _ => self.value(item, Strings::Other),
        }
    }

    /// A URL, or an object that has one. Only what the URL itself holds stays with the client.
    fn url(&mut self, item: &mut Item<'a>) -> Result<(), Refusal> {
        match self.scanner.kind()? {
            Kind::Object => self.source(item),
            Kind::Array => self.array(|reader, _| reader.url(item)),
            Kind::String => {
                let url = self.scanner.string()?;
                if !holds_its_data(url) {
                    self.reaches(Reach::RemoteUrl, None);
                }
                Ok(())
            }
            _ => self.scanner.skip().map(drop).map_err(Refusal::from),
        }
    }

    /// Whether something that may be data or a URL is a URL.
    fn is_remote(&mut self, item: &mut Item<'a>) -> Result<bool, Refusal> {
        if self.scanner.kind()? != Kind::String {
            return self.value(item, Strings::Other).map(|()| false);
        }
        let text = self.scanner.string()?;
        let start: String = text.decode().chars().take(32).collect();
        Ok(start.contains("://"))
    }

    fn stored_file(&mut self) -> Result<(), Refusal> {
        if self.scanner.kind()? != Kind::Null {
            self.reaches(Reach::StoredFile, None);
        }
        self.scanner.skip()?;
        Ok(())
    }
}

impl Item<'_> {
    fn push(&mut self, text: Text<'_>) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        text.decode_into(&mut self.text);
    }

    /// Whether it refers to an item that is stored at the upstream. Such a reference may omit its type.
    fn is_reference(&self) -> bool {
        match self.of.as_deref() {
            Some(of) => of == "item_reference",
            None => self.role.is_none() && self.id.is_some(),
        }
    }
}

/// Whether a URL carries what it names.
pub(super) fn holds_its_data(url: Text<'_>) -> bool {
    let is_data = |url: &str| url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    url.raw.is_empty() || is_data(url.raw) || is_data(&url.decode())
}
