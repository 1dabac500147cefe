//! A walk over a TOML document that notes every problem with its place, and goes on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bad::Problem;
use super::names::{instead, shown};

/// A problem was noted, so that there is no value. Who reads goes on with the rest, to note what is wrong there too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted;

/// What was read.
pub(super) type Read<T> = Result<T, Noted>;

/// What is known of a file while it is read.
pub(super) struct Reading<'t> {
    text: &'t str,
    base: &'t Path,
    problems: RefCell<Vec<Problem>>,
    places: RefCell<BTreeMap<String, usize>>,
}

impl<'t> Reading<'t> {
    /// A text whose relative paths start at `base`.
    pub(super) fn new(text: &'t str, base: &'t Path) -> Self {
        Self { text, base, problems: RefCell::default(), places: RefCell::default() }
    }

    /// Notes a problem with what lies at a path of keys.
    pub(super) fn note(&self, path: &str, problem: impl Into<String>, expected: impl Into<String>) {
        let at = self.places.borrow().get(path).copied();
        self.note_at(at, problem, expected);
    }

    fn note_at(&self, at: Option<usize>, problem: impl Into<String>, expected: impl Into<String>) {
        let place = at.map(|at| place(self.text, at));
        self.problems.borrow_mut().push(Problem { place, ..Problem::new(problem, expected) });
    }

    /// Every problem that was noted.
    pub(super) fn problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }
}

/// The line and the column of a byte, from 1.
pub(super) fn place(text: &str, at: usize) -> (u64, u64) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    let lines = memchr::memchr_iter(b'\n', before).count();
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count();
    (lines as u64 + 1, column as u64 + 1)
}

/// One value, by the keys that lead to it.
pub(super) struct Value<'r, 't> {
    pub(super) reading: &'r Reading<'t>,
    pub(super) path: String,
    written: &'r Spanned<DeValue<'t>>,
}

impl<'r, 't> Value<'r, 't> {
    fn new(reading: &'r Reading<'t>, path: String, written: &'r Spanned<DeValue<'t>>) -> Self {
        reading.places.borrow_mut().insert(path.clone(), written.span().start);
        Self { reading, path, written }
    }

    /// Notes that this cannot be. `problem` goes on after the path: `is empty`.
    pub(super) fn refuse<T>(&self, problem: &str, expected: impl Into<String>) -> Read<T> {
        self.reading.note(&self.path, format!("`{}` {problem}", self.path), expected);
        Err(Noted)
    }

    fn other_kind<T>(&self, expected: &str) -> Read<T> {
        self.refuse(&format!("is {}", kind(self.written.get_ref())), format!("expected {expected}"))
    }

    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&'r str> {
        self.written.get_ref().as_str()
    }

    /// A text.
    pub(super) fn text(&self, expected: &str) -> Read<&'r str> {
        self.as_text().map_or_else(|| self.other_kind(expected), Ok)
    }

    /// A text, or a number as it is written: no float comes in between.
    pub(super) fn text_or_number(&self, expected: &str) -> Read<&'r str> {
        match self.written.get_ref() {
            DeValue::String(text) => Ok(text),
            DeValue::Integer(whole) if whole.radix() == 10 => Ok(whole.as_str()),
            DeValue::Float(decimal) => Ok(decimal.as_str()),
            _ => self.other_kind(expected),
        }
    }

    /// A whole number.
    pub(super) fn whole(&self) -> Read<u64> {
        let whole = self.written.get_ref().as_integer();
        let number = whole.and_then(|whole| u64::from_str_radix(whole.as_str(), whole.radix()).ok());
        match (number, whole) {
            (Some(number), _) => Ok(number),
            (None, Some(_)) => self.refuse("is negative or too large", "expected a whole number"),
            (None, None) => self.other_kind("a whole number"),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&self) -> Read<bool> {
        self.written.get_ref().as_bool().map_or_else(|| self.other_kind("`true` or `false`"), Ok)
    }

    /// A list.
    pub(super) fn list(&self, expected: &str) -> Read<Vec<Value<'r, 't>>> {
        let Some(list) = self.written.get_ref().as_array() else { return self.other_kind(expected) };
        let item = |(at, value)| Value::new(self.reading, format!("{}[{at}]", self.path), value);
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// Keys and values.
    pub(super) fn keys(&self, expected: &str) -> Read<Keys<'r, 't>> {
        let Some(table) = self.written.get_ref().as_table() else { return self.other_kind(expected) };
        Ok(Keys { reading: self.reading, path: self.path.clone(), table, known: Vec::new() })
    }

    /// A path. A relative one starts where the file lies.
    pub(super) fn file_path(&self) -> Read<PathBuf> {
        let text = self.text("a path")?;
        match path_problem(text) {
            Some(problem) => self.refuse(problem, "expected a path, absolute or relative to this file"),
            None => Ok(self.reading.base.join(text)),
        }
    }

    /// Where relative paths start.
    pub(super) fn base(&self) -> &'t Path {
        self.reading.base
    }
}

/// Why a text is no path.
pub(super) fn path_problem(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("is empty")
    } else if text.starts_with('~') {
        Some("starts with `~`, which only a shell understands")
    } else if text.chars().any(char::is_control) {
        Some("holds a control character")
    } else {
        None
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "a yes or no",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table of keys",
    }
}

/// The keys of a table. What nobody asked for by [`Keys::done`] is unknown.
pub(super) struct Keys<'r, 't> {
    pub(super) reading: &'r Reading<'t>,
    pub(super) path: String,
    table: &'r DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'r, 't> Keys<'r, 't> {
    /// The keys at the top of a document.
    pub(super) fn of_document(reading: &'r Reading<'t>, table: &'r DeTable<'t>) -> Self {
        Self { reading, path: String::new(), table, known: Vec::new() }
    }

    /// What a key holds.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Value<'r, 't>> {
        self.known.push(key);
        self.table.get(key).map(|value| Value::new(self.reading, self.below(key), value))
    }

    /// What a key holds that must be there. `expected` says what to write.
    pub(super) fn need(&mut self, key: &'static str, expected: &str) -> Read<Value<'r, 't>> {
        self.get(key).ok_or_else(|| {
            let problem = format!("`{}` is missing", self.below(key));
            self.reading.note(&self.path, problem, format!("write {expected}"));
            Noted
        })
    }

    /// Every entry of a table whose keys are names that the operator chose.
    pub(super) fn entries(&self) -> Vec<(&'r str, Value<'r, 't>)> {
        let entry = |(key, value): (&'r Spanned<_>, _)| {
            let name: &'r std::borrow::Cow<'t, str> = key.get_ref();
            (name.as_ref(), Value::new(self.reading, self.below(name), value))
        };
        self.table.iter().map(entry).collect()
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Refuses what nobody asked for.
    pub(super) fn done(self) {
        self.refuse_unknown(|key, known| (format!("unknown key {}", shown(key)), instead(key, known)));
    }

    /// The same where a secret may stand in a key's place: the key is not shown.
    pub(super) fn done_unshown(self) {
        self.refuse_unknown(|_, known| {
            ("unknown key".to_owned(), format!("expected one of: {}", known.join(", ")))
        });
    }

    fn refuse_unknown(self, say: impl Fn(&str, &[&str]) -> (String, String)) {
        for key in self.table.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref())) {
            let (problem, expected) = say(key.get_ref(), &self.known);
            let within = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            self.reading.note_at(Some(key.span().start), format!("{problem}{within}"), expected);
        }
    }

    fn below(&self, key: &str) -> String {
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.path, super::names::as_key(key))
    }
}
