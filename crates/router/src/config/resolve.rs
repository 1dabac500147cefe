//! From a document to a configuration: relative paths, defaults, and what depends on several keys.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;

use super::address::{Address, DEFAULT};
use super::check::check;
use super::clients::{ClientConfig, ClientTable};
use super::document::Document;
use super::locate::{key_place, place};
use super::models::{ModelConfig, ModelTable};
use super::names::as_key;
use super::problem::{BadConfig, Problem};
use super::table::Table;
use super::upstreams::{UpstreamConfig, UpstreamPlace, UpstreamTable};
use super::values::Flaw;
use super::{Config, KeySource};

/// The problems of a document, with their places.
pub(super) struct Problems<'t> {
    text: &'t str,
    found: Vec<Problem>,
}

impl Problems<'_> {
    /// A problem at this byte.
    pub(super) fn add(&mut self, at: usize, problem: impl Into<String>, expected: impl Into<String>) {
        let place = Some(place(self.text, at));
        self.found.push(Problem { place, ..Problem::new(problem, expected) });
    }

    /// A value that is refused, by the path of its key.
    fn refuse(&mut self, at: usize, path: &str, flaw: Flaw) {
        self.add(at, format!("`{path}` {}", flaw.problem), flaw.expected);
    }
}

/// The configuration, if all of it is valid.
pub(super) fn resolve(document: &Document, text: &str, file: &Path) -> Result<Config, BadConfig> {
    let base = file.parent().unwrap_or(Path::new(""));
    let mut problems = Problems { text, found: Vec::new() };
    let (listen, admin) = addresses(document, base, &mut problems);
    let state = document.state.as_ref().map_or_else(|| base.join("state"), |state| state.from(base));
    let upstreams = document
        .upstreams
        .iter()
        .filter_map(|(name, table)| Some((name.0.clone(), upstream(&name.0, table, base, &mut problems)?)));
    let upstreams: BTreeMap<String, UpstreamConfig> = upstreams.collect();
    let models = document
        .models
        .iter()
        .filter_map(|(name, table)| Some((name.0.clone(), model(&name.0, table, &mut problems)?)));
    let models: BTreeMap<String, ModelConfig> = models.collect();
    let clients = document
        .clients
        .iter()
        .filter_map(|(name, table)| Some((name.0.clone(), client(&name.0, table, base, &mut problems)?)));
    let clients: BTreeMap<String, ClientConfig> = clients.collect();
    let prices = document.prices.iter().map(|(name, fields)| (name.written(), fields.get_ref().resolve()));
    let config = Config {
        file: file.to_owned(),
        listen,
        admin,
        state,
        limits: document.limits.0.clone(),
        upstreams,
        models,
        prices: prices.collect(),
        budgets: document.budgets.0.clone(),
        clients,
    };
    check(document, &config, &mut problems);
    if problems.found.is_empty() { Ok(config) } else { Err(BadConfig::new(file, problems.found)) }
}

fn addresses(document: &Document, base: &Path, problems: &mut Problems<'_>) -> (Address, Option<Address>) {
    let listen = document.listen.as_ref().map(|table| {
        table.resolve(base).unwrap_or_else(|flaw| {
            problems.refuse(table.address.span().start, "listen.address", flaw);
            DEFAULT
        })
    });
    // A router that serves only runs of `herma run` listens on a socket of the run.
    let listen = listen.unwrap_or(DEFAULT);
    let admin = document.admin.as_ref().and_then(|table| {
        let address = table.resolve(base);
        address.map_err(|flaw| problems.refuse(table.address.span().start, "admin.address", flaw)).ok()
    });
    (listen, admin)
}

fn upstream(
    name: &str,
    table: &Spanned<Table<UpstreamTable>>,
    base: &Path,
    problems: &mut Problems<'_>,
) -> Option<UpstreamConfig> {
    let (at, flaw) = match table.get_ref().resolve(base) {
        Ok(upstream) => return Some(upstream),
        Err(refused) => refused,
    };
    let path = format!("upstreams.{}", as_key(name));
    match at {
        UpstreamPlace::Table => problems.refuse(table.span().start, &path, flaw),
        UpstreamPlace::Value(key, at) => problems.refuse(at, &format!("{path}.{key}"), flaw),
        UpstreamPlace::UnknownKey(key) => {
            let place = key_place(problems.text, &["upstreams", name], key);
            let problem = Problem::new(format!("{} in `{path}`", flaw.problem), flaw.expected);
            problems.found.push(Problem { place, ..problem });
        }
    }
    None
}

fn model(name: &str, table: &Spanned<Table<ModelTable>>, problems: &mut Problems<'_>) -> Option<ModelConfig> {
    let path = format!("models.{}", as_key(name));
    let chain = &table.get_ref().chain;
    if chain.get_ref().is_empty() {
        let flaw =
            Flaw::new("is empty, so that no upstream answers", "expected `chain = [\"upstream/model\"]`");
        problems.refuse(chain.span().start, &format!("{path}.chain"), flaw);
        return None;
    }
    let model = table.get_ref().resolve();
    if model.is_none() {
        let expected = format!("expected at most {}, or a higher `ceiling`", table.get_ref().ceiling());
        let flaw = Flaw::new("has a `default_output` above its `ceiling`", expected);
        problems.refuse(table.span().start, &path, flaw);
    }
    model
}

fn client(name: &str, table: &ClientTable, base: &Path, problems: &mut Problems<'_>) -> Option<ClientConfig> {
    let path = format!("clients.{}", as_key(name));
    let token = table.token.get_ref().resolve(base);
    let token = token.map_err(|flaw| {
        problems.refuse(table.token.span().start, &format!("{path}.token"), flaw);
    });
    let token: Option<KeySource> = token.ok();
    if table.models.get_ref().is_empty() {
        let expected = "expected `models = [\"NAME\"]`, with names of `[models]`";
        let flaw = Flaw::new("is empty, so that the client may use no model", expected);
        problems.refuse(table.models.span().start, &format!("{path}.models"), flaw);
    }
    Some(ClientConfig {
        token: token?,
        models: table.models.get_ref().iter().map(|model| model.get_ref().0.clone()).collect(),
        budget: table.budget,
        admit: table.admit.iter().map(|reach| reach.0).collect(),
        engine: table.engine.as_ref().map(|engine| engine.0.clone()),
    })
}
