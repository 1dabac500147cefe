//! Checks across the parts of a configuration.

use std::collections::{BTreeMap, BTreeSet};

use herma_dialect::endpoint::{Endpoint, path_of};

use super::Config;
use super::document::Document;
use super::models::ModelTable;
use super::names::{as_key, instead, shown};
use super::resolve::Problems;
use super::upstreams::UpstreamConfig;
use super::values::Name;
use crate::budget::Limits;

/// Adds every contradiction.
pub(super) fn check(document: &Document, config: &Config, problems: &mut Problems<'_>) {
    addresses_differ(document, config, problems);
    for (name, model) in &document.models {
        let path = format!("models.{}.chain", as_key(&name.0));
        links_exist(document, model.get_ref(), &path, problems);
        links_share_an_endpoint(config, model.get_ref(), &path, problems);
    }
    model_names_differ(document, problems);
    prices_have_upstreams(document, problems);
    clients_use_known_models(document, problems);
    tokens_differ(document, config, problems);
    dollar_budgets_have_prices(document, config, problems);
}

fn upstream_names(document: &Document) -> Vec<&str> {
    document.upstreams.keys().map(|name| name.0.as_str()).collect()
}

fn has_upstream(document: &Document, name: &str) -> bool {
    document.upstreams.contains_key(&Name(name.to_owned()))
}

fn addresses_differ(document: &Document, config: &Config, problems: &mut Problems<'_>) {
    if let (Some(table), Some(admin)) = (&document.admin, &config.admin)
        && *admin == config.listen
    {
        let expected = "expected an address of its own, which no client reaches";
        problems.add(table.address.span().start, "`admin.address` is the address for clients", expected);
    }
}

fn links_exist(document: &Document, model: &ModelTable, path: &str, problems: &mut Problems<'_>) {
    for (item, link) in model.chain.get_ref().iter().enumerate() {
        let upstream = &link.get_ref().upstream;
        if !has_upstream(document, upstream) {
            let problem =
                format!("`{path}[{item}]` names the upstream {}, which does not exist", shown(upstream));
            let expected = match instead(upstream, &upstream_names(document)) {
                none if none.is_empty() => format!("write `[upstreams.{upstream}]`"),
                some => some,
            };
            problems.add(link.span().start, problem, expected);
        }
    }
}

/// Requests are not translated: all upstreams of a chain must have a common endpoint.
fn links_share_an_endpoint(config: &Config, model: &ModelTable, path: &str, problems: &mut Problems<'_>) {
    let links = model.chain.get_ref().iter();
    let chain: Option<Vec<&UpstreamConfig>> =
        links.map(|link| config.upstreams.get(&link.get_ref().upstream)).collect();
    let Some(chain) = chain else { return };
    let is_common =
        |endpoint: &Endpoint| chain.iter().all(|upstream| upstream.provider.endpoints().contains(endpoint));
    let Some(first) = chain.first() else { return };
    if first.provider.endpoints().iter().any(is_common) {
        return;
    }
    let described = |upstream: &&UpstreamConfig| {
        let first = upstream.provider.endpoints().first().map(|endpoint| path_of(*endpoint));
        format!("{} answers {}", upstream.provider.name(), first.unwrap_or_default())
    };
    let described: BTreeSet<String> = chain.iter().map(described).collect();
    let described: Vec<String> = described.into_iter().collect();
    problems.add(
        model.chain.span().start,
        format!("`{path}` has upstreams that share no API ({}, …)", described.join(", ")),
        "expected upstreams with a common one, because requests are not translated; make two models of it",
    );
}

/// Clients could confuse two names that differ only by case.
fn model_names_differ(document: &Document, problems: &mut Problems<'_>) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let names = document
        .models
        .iter()
        .map(|(name, table)| (&name.0, format!("models.{}", as_key(&name.0)), table.span().start));
    let aliases = document.models.iter().flat_map(|(name, table)| {
        let path = format!("models.{}.aliases", as_key(&name.0));
        let aliases = table.get_ref().aliases.iter().enumerate();
        aliases.map(move |(item, alias)| (&alias.get_ref().0, format!("{path}[{item}]"), alias.span().start))
    });
    for (name, path, at) in names.chain(aliases) {
        if let Some(earlier) = seen.get(&name.to_ascii_lowercase()) {
            let problem = format!("`{path}` has the same name as `{earlier}`: {}", shown(name));
            problems.add(at, problem, "expected names that differ in more than case");
        } else {
            seen.insert(name.to_ascii_lowercase(), path);
        }
    }
}

fn prices_have_upstreams(document: &Document, problems: &mut Problems<'_>) {
    for (name, price) in &document.prices {
        if !has_upstream(document, &name.upstream) {
            let path = format!("prices.{}", as_key(&name.written()));
            let upstream = shown(&name.upstream);
            let problem = format!("`{path}` is a price of the upstream {upstream}, which does not exist");
            problems.add(price.span().start, problem, instead(&name.upstream, &upstream_names(document)));
        }
    }
}

fn clients_use_known_models(document: &Document, problems: &mut Problems<'_>) {
    let of_alias = |wanted: &str| {
        let has_alias = |model: &ModelTable| model.aliases.iter().any(|alias| alias.get_ref().0 == wanted);
        document.models.iter().find(|(_, model)| has_alias(model.get_ref())).map(|(name, _)| &name.0)
    };
    let known: Vec<&str> = document.models.keys().map(|name| name.0.as_str()).collect();
    for (client, table) in &document.clients {
        for (item, model) in table.models.get_ref().iter().enumerate() {
            let name = &model.get_ref().0;
            if document.models.contains_key(model.get_ref()) {
                continue;
            }
            let path = format!("clients.{}.models[{item}]", as_key(&client.0));
            let problem = format!("`{path}` names the model {}, which does not exist", shown(name));
            let expected = match of_alias(name) {
                Some(model) => format!("it is an alias: write {}", shown(model)),
                None => instead(name, &known),
            };
            problems.add(model.span().start, problem, expected);
        }
    }
}

/// A token identifies one client. [`Config::secrets`] compares the values; here only the sources are known.
fn tokens_differ(document: &Document, config: &Config, problems: &mut Problems<'_>) {
    let mut seen = BTreeMap::new();
    for (name, client) in &config.clients {
        let Some(table) = document.clients.get(&Name(name.clone())) else { continue };
        let path = format!("clients.{}.token", as_key(name));
        let at = table.token.span().start;
        if let Some((earlier, _)) = seen.insert(&client.token, (path.clone(), at)) {
            let problem = format!("`{path}` is the same as `{earlier}`");
            problems.add(at, problem, "expected a token of its own for each client");
        }
    }
    for (name, upstream) in &config.upstreams {
        let key = upstream.provider.http().and_then(|http| http.key.as_ref());
        if let Some((path, at)) = key.and_then(|key| seen.get(key)) {
            let problem = format!("`{path}` is the key of the upstream {}", shown(name));
            problems.add(*at, problem, "expected a token that is valid for the router alone");
        }
    }
}

/// A budget in dollars needs the price of every model that counts against it.
fn dollar_budgets_have_prices(document: &Document, config: &Config, problems: &mut Problems<'_>) {
    let budgets = &config.budgets;
    let in_dollars = |limits: &Limits| limits.micro_usd.is_some();
    let mut reached: BTreeMap<&String, String> = BTreeMap::new();
    for (name, client) in &config.clients {
        let engine =
            client.engine.as_ref().filter(|engine| budgets.engines.get(*engine).is_some_and(in_dollars));
        let budget = match engine {
            _ if in_dollars(&client.budget) => format!("clients.{}.budget", as_key(name)),
            Some(engine) => format!("budgets.engines.{}", as_key(engine)),
            None => continue,
        };
        for model in &client.models {
            reached.entry(model).or_insert_with(|| budget.clone());
        }
    }
    for (name, model) in &document.models {
        let budget = match reached.get(&name.0) {
            Some(budget) => budget,
            None if in_dollars(&budgets.day) => "budgets.day",
            None => continue,
        };
        for (item, link) in model.get_ref().chain.get_ref().iter().enumerate() {
            let price = link.get_ref().written();
            if has_upstream(document, &link.get_ref().upstream) && !config.prices.contains_key(&price) {
                let path = format!("models.{}.chain[{item}]", as_key(&name.0));
                let problem = format!("`{path}` has no price, and `{budget}` is in dollars");
                let write =
                    format!("write `prices.\"{price}\" = {{ input = \"1.25\", output = \"10.00\" }}`");
                problems.add(link.span().start, problem, write);
            }
        }
    }
}
