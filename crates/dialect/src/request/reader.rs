//! One pass over a request: the top of the body, and what the parts of it share.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use super::conversation::holds_its_data;
use super::keys::{Keys, lookalike};
use super::path::{Step, shown};
use super::spans::{Maximum, MaximumKey, Spans, StreamOptions};
use super::{Outline, Tool, Turns};
use crate::dialect::Dialect;
use crate::endpoint::{Endpoint, dialect_of};
use crate::json::{Kind, Scanner};
use crate::reaches_out::{self, Reach, ReachesOut};
use crate::refusal::Refusal;
use crate::request_keys::is_listed;

/// No request names more tokens or answers than this. Larger numbers wrap around in some servers.
const MAX_NUMBER: u64 = i32::MAX as u64;

/// At most this many places of each kind are kept: admission asks for the kinds, the client sees the first place.
const MAX_REACHES_OF_A_KIND: usize = 8;

/// No upstream adds so many keys to an API.
const MAX_UNLISTED: usize = 64;

/// Where the reader is, and what it has found.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) dialect: Dialect,
    endpoint: Endpoint,
    pub(super) scanner: Scanner<'a>,
    path: SmallVec<[Step<'a>; 6]>,
    keys: Keys<'a>,
    /// Whether texts and schemas are kept, or only looked at.
    pub(super) keeps: bool,
    pub(super) tools: Vec<Tool>,
    pub(super) turns: Turns,
    reaches_out: Vec<ReachesOut>,
    unlisted: Vec<String>,
    body: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(endpoint: Endpoint, body: &'a str, keeps: bool) -> Self {
        Self {
            dialect: dialect_of(endpoint),
            endpoint,
            scanner: Scanner::new(body),
            path: SmallVec::new(),
            keys: Keys::default(),
            keeps,
            tools: Vec::new(),
            turns: Turns::default(),
            reaches_out: Vec::new(),
            unlisted: Vec::new(),
            body,
        }
    }

    /// Reads the whole body.
    pub(super) fn request(&mut self) -> Result<Outline<'a>, Refusal> {
        if self.scanner.kind()? != Kind::Object {
            self.scanner.skip()?;
            self.scanner.end()?;
            return Err(Refusal::NotAnObject);
        }
        let mut top =
            Top { spans: Spans { start: self.scanner.position() + 1, ..Spans::default() }, ..Top::default() };
        self.object(|reader, key| reader.top(key, &mut top))?;
        self.scanner.end()?;
        let Some(model) = top.model else { return Err(Refusal::Missing { key: "model" }) };
        Ok(Outline {
            model,
            stream: top.stream,
            include_usage: top.include_usage,
            max_output: top.spans.maxima.iter().filter_map(|maximum| maximum.value).max(),
            choices: top.choices.unwrap_or(1).max(top.best_of.unwrap_or(1)) * top.prompts.unwrap_or(1),
            store: top.store,
            reaches_out: std::mem::take(&mut self.reaches_out),
            unlisted: std::mem::take(&mut self.unlisted),
            dialect: self.dialect,
            body: self.body,
            spans: top.spans,
        })
    }

    /// One key of the body.
    fn top(&mut self, key: &str, top: &mut Top<'a>) -> Result<(), Refusal> {
        let chat = self.dialect == Dialect::Chat;
        if !is_listed(self.endpoint, key) {
            if self.unlisted.len() >= MAX_UNLISTED {
                return Err(Refusal::UnknownKey { path: shown(&self.path) });
            }
            self.unlisted.push(key.to_owned());
        }
        match key {
            "model" => {
                if self.scanner.kind()? != Kind::String {
                    return Err(self.wrong("a string"));
                }
                let start = self.scanner.position();
                let model = self.scanner.string()?;
                top.spans.model = start..start + model.raw.len() + 2;
                top.model = Some(model.decode());
            }
            "stream" => top.stream = self.flag()?.1.unwrap_or(false),
            "stream_options" if chat => self.stream_options(top)?,
            "n" if chat => top.choices = self.number(1)?.1,
            "best_of" if chat => top.best_of = self.number(1)?.1,
            "prompt" if chat => top.prompts = Some(self.prompts()?),
            "tools" | "functions" => self.tools(key == "functions")?,
            "messages" | "input" => self.conversation()?,
            "system" | "instructions" => self.preamble()?,
            "metadata" | "client_metadata" => self.scalars()?,
            "store" => {
                let (span, value) = self.flag()?;
                top.store = value;
                top.spans.store = Some(span);
                if value == Some(true) {
                    self.reaches(Reach::StoredConversation, None);
                }
            }
            "prompt" if self.dialect == Dialect::Responses => self.set(Reach::StoredConversation)?,
            _ => {
                if let Some(key) = MaximumKey::of(self.dialect, key) {
                    let maximum = self.maximum(key)?;
                    top.spans.maxima.push(maximum);
                } else if let Some((_, reach)) = reaches_out::KEYS.iter().find(|(name, _)| *name == key) {
                    self.set(*reach)?;
                } else {
                    self.find_urls(key)?;
                }
            }
        }
        Ok(())
    }

    fn maximum(&mut self, key: MaximumKey) -> Result<Maximum, Refusal> {
        // A maximum of zero warms the cache of Messages. Elsewhere some servers take it for none.
        let (span, value) = self.number(u64::from(self.dialect != Dialect::Messages))?;
        Ok(Maximum { key, span, value })
    }

    fn stream_options(&mut self, top: &mut Top<'a>) -> Result<(), Refusal> {
        let start = self.scanner.position();
        match self.scanner.kind()? {
            Kind::Null => top.spans.stream_options = Some(StreamOptions::Null(self.scanner.skip()?)),
            Kind::Object => {
                let (mut empty, mut found) = (true, None);
                self.object(|reader, key| {
                    empty = false;
                    if key == "include_usage" {
                        let (span, value) = reader.flag()?;
                        top.include_usage = value;
                        found = Some(span);
                    } else {
                        reader.find_urls(key)?;
                    }
                    Ok(())
                })?;
                let options = StreamOptions::Object { start: start + 1, empty, include_usage: found };
                top.spans.stream_options = Some(options);
            }
            _ => return Err(self.wrong("an object")),
        }
        Ok(())
    }

    /// An object without lists and objects in it. Gateways read more than labels from such places: tags, other models.
    fn scalars(&mut self) -> Result<(), Refusal> {
        if self.scanner.kind()? != Kind::Object {
            return self.scanner.skip().map(drop).map_err(Refusal::from);
        }
        self.object(|reader, _| match reader.scanner.kind()? {
            Kind::Object | Kind::Array => Err(reader.wrong("a string")),
            _ => reader.scanner.skip().map(drop).map_err(Refusal::from),
        })
    }

    /// Looks for URLs in a value outside of the conversation, where a gateway might fetch them too. A schema describes data,
    /// and nothing in it is fetched.
    pub(super) fn find_urls(&mut self, key: &str) -> Result<(), Refusal> {
        match self.scanner.kind()? {
            Kind::Object if key != "schema" => self.object(Reader::find_urls),
            Kind::Array => self.array(|reader, _| reader.find_urls(key)),
            Kind::String if reaches_out::names_url(key) => {
                let url = self.scanner.string()?;
                if !holds_its_data(url) {
                    self.reaches(Reach::RemoteUrl, None);
                }
                Ok(())
            }
            _ => self.scanner.skip().map(drop).map_err(Refusal::from),
        }
    }

    /// How many prompts a request for plain completions has: one text or list of tokens, or several of them.
    fn prompts(&mut self) -> Result<u64, Refusal> {
        let mut prompts = 0;
        if self.scanner.kind()? == Kind::Array {
            self.array(|reader, _| {
                prompts += u64::from(matches!(reader.scanner.kind()?, Kind::String | Kind::Array));
                reader.scanner.skip()?;
                Ok(())
            })?;
        } else {
            self.scanner.skip()?;
        }
        Ok(prompts.max(1))
    }

    /// Notes a key that makes the upstream reach out, unless its value says that it is not set. An empty object does not
    /// say so: options of a search without any option switch it on.
    fn set(&mut self, reach: Reach) -> Result<(), Refusal> {
        let span = self.scanner.skip()?;
        let value: String = self.scanner.slice(span).split_ascii_whitespace().take(3).collect();
        if !matches!(value.as_str(), "null" | "false" | "[]") {
            self.reaches(reach, None);
        }
        Ok(())
    }

    /// A whole number, or null.
    fn number(&mut self, least: u64) -> Result<(Range<usize>, Option<u64>), Refusal> {
        let kind = self.scanner.kind()?;
        let span = self.scanner.skip()?;
        let written = self.scanner.slice(span.clone());
        let value = match kind {
            Kind::Null => return Ok((span, None)),
            Kind::Number => written.parse().ok().filter(|number| (least..=MAX_NUMBER).contains(number)),
            _ => return Err(self.wrong("a whole number")),
        };
        let out_of_range = || Refusal::OutOfRange { path: shown(&self.path), least, most: MAX_NUMBER };
        Ok((span, Some(value.ok_or_else(out_of_range)?)))
    }

    /// A truth value, or null.
    fn flag(&mut self) -> Result<(Range<usize>, Option<bool>), Refusal> {
        let start = self.scanner.position();
        let value = match self.scanner.kind()? {
            Kind::Null => return Ok((self.scanner.skip()?, None)),
            Kind::Bool => self.scanner.boolean()?,
            _ => return Err(self.wrong("true or false")),
        };
        Ok((start..start + if value { 4 } else { 5 }, Some(value)))
    }

    /// The string that comes next, or nothing if it is something else.
    pub(super) fn string(&mut self) -> Result<Option<Cow<'a, str>>, Refusal> {
        if self.scanner.kind()? == Kind::String {
            return Ok(Some(self.scanner.string()?.decode()));
        }
        self.scanner.skip()?;
        Ok(None)
    }

    /// Goes through the object that comes next, key by key. `each` moves over the value.
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.scanner.enter()?;
        let (mut scope, mut first) = (self.keys.open(), true);
        while let Some(key) = self.scanner.next_key(first)? {
            first = false;
            let key = key.decode();
            self.path.push(Step::Key(key.clone()));
            if !self.keys.add(&mut scope, key.clone()) {
                return Err(Refusal::DuplicateKey { path: shown(&self.path) });
            }
            if let Some(known) = lookalike(&key) {
                return Err(Refusal::LookalikeKey { path: shown(&self.path), key: known.to_owned() });
            }
            each(self, &key)?;
            self.path.pop();
        }
        self.keys.close(&scope);
        Ok(())
    }

    /// Goes through the array that comes next, item by item. `each` moves over the item.
    pub(super) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.scanner.enter()?;
        let mut at = 0;
        while self.scanner.next_item(at == 0)? {
            self.path.push(Step::Item(at));
            each(self, at)?;
            self.path.pop();
            at += 1;
        }
        Ok(())
    }

    /// Notes that what the reader is at makes the upstream reach out.
    pub(super) fn reaches(&mut self, reach: Reach, name: Option<&str>) {
        if self.reaches_out.iter().filter(|found| found.reach == reach).count() < MAX_REACHES_OF_A_KIND {
            let name = name.map(|name| name.chars().filter(|c| !c.is_control()).take(64).collect());
            self.reaches_out.push(ReachesOut { reach, path: shown(&self.path), name });
        }
    }

    /// Withdraws the remote URL that was found directly at this key of the current object.
    pub(super) fn withdraw_url(&mut self, key: &str) {
        let path = format!("{}.{key}", shown(&self.path));
        self.reaches_out.retain(|found| found.reach != Reach::RemoteUrl || found.path != path);
    }

    pub(super) fn wrong(&self, expected: &'static str) -> Refusal {
        Refusal::WrongType { path: shown(&self.path), expected }
    }
}

/// The top level of a body.
#[derive(Debug, Default)]
struct Top<'a> {
    model: Option<Cow<'a, str>>,
    stream: bool,
    include_usage: Option<bool>,
    choices: Option<u64>,
    best_of: Option<u64>,
    prompts: Option<u64>,
    store: Option<bool>,
    spans: Spans,
}
