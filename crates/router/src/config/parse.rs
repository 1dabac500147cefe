//! From a file to a configuration, or to everything that is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;

use super::bad::{BadConfig, Problem};
use super::check::{Written, check};
use super::document::{Keys, Read, Reading, Value, place};
use super::names::name_problem;
use super::{Config, address, budgets, clients, limits, models, names, prices, private_file, upstreams};

/// A configuration is a page of text; what is larger is none.
pub const MAX_BYTES: u64 = 1 << 20;

impl Config {
    /// Reads a configuration from its file.
    pub fn read(file: &Path) -> Result<Self, BadConfig> {
        let text =
            private_file::read_config(file, MAX_BYTES).map_err(|problem| BadConfig::one(file, problem))?;
        Self::parse(&text, file)
    }

    /// Reads a configuration from its text. Relative paths in it start where `file` lies.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BadConfig> {
        if text.len() as u64 > MAX_BYTES {
            return Err(BadConfig::one(file, private_file::too_large(MAX_BYTES)));
        }
        // The parser's own Display shows the line, and a secret may stand in it.
        let table = DeTable::parse(text).map_err(|error| {
            let place = error.span().map(|span| place(text, span.start));
            let problem = Problem::new(format!("this is not TOML: {}", error.message()), "");
            BadConfig::one(file, Problem { place, ..problem })
        })?;
        let reading = Reading::new(text, file.parent().unwrap_or(Path::new("")));
        let config = read(Keys::of_document(&reading, table.get_ref()), file);
        match (config, reading.problems()) {
            (Ok(config), problems) if problems.is_empty() => Ok(config),
            (_, problems) => Err(BadConfig::new(file, problems)),
        }
    }
}

/// All parts are read before the first problem ends it.
fn read(mut document: Keys<'_, '_>, file: &Path) -> Read<Config> {
    let reading = document.reading;
    let listen = address::listen(&mut document);
    let admin = address::admin(&mut document);
    let state = match document.get("state") {
        None => Ok(file.parent().unwrap_or(Path::new("")).join("state")),
        Some(value) => value.file_path(),
    };
    let limits = limits::request_limits(&mut document);
    let upstreams = named(document.get("upstreams"), "an upstream", |value| upstreams::upstream(&value));
    let models = entries(document.get("models"), |name, value| {
        if let Some(expected) = names::model_name_problem(name) {
            return value.refuse("is not a model's name", expected);
        }
        models::model(&value)
    });
    let prices = entries(document.get("prices"), |name, value| prices::price(name, &value));
    let budgets = budgets::budgets(&mut document);
    let clients = named(document.get("clients"), "a client", |value| clients::client(&value));
    document.done();
    let written = Written { listen, admin, upstreams, models, prices, budgets, clients };
    check(&written, reading);
    let Written { listen, admin, upstreams, models, prices, budgets, clients } = written;
    Ok(Config {
        file: file.to_owned(),
        listen: listen?,
        admin: admin?,
        state: state?,
        limits: limits?,
        upstreams: whole(upstreams)?,
        models: whole(models)?,
        prices: whole(prices)?,
        budgets: budgets?,
        clients: whole(clients)?,
    })
}

/// What is written under names. The name of what could not be read is still known.
pub(super) type Named<T> = BTreeMap<String, Read<T>>;

/// All of it, if all could be read.
pub(super) fn whole<T>(named: Named<T>) -> Read<BTreeMap<String, T>> {
    named.into_iter().map(|(name, value)| Ok((name, value?))).collect()
}

/// The entries of a table whose keys are names.
pub(super) fn named<'r, 't, T>(
    table: Option<Value<'r, 't>>,
    what: &str,
    read: impl Fn(Value<'r, 't>) -> Read<T>,
) -> Named<T> {
    entries(table, |name, value| match name_problem(name) {
        Some(expected) => value.refuse(&format!("is not {what}'s name"), expected),
        None => read(value),
    })
}

fn entries<'r, 't, T>(
    table: Option<Value<'r, 't>>,
    read: impl Fn(&str, Value<'r, 't>) -> Read<T>,
) -> Named<T> {
    let keys = table.and_then(|table| table.keys("a table with a name for each entry").ok());
    let entries = keys.map(|keys| keys.entries()).unwrap_or_default();
    entries.into_iter().map(|(name, value)| (name.to_owned(), read(name, value))).collect()
}
