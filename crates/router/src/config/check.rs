//! What must hold across the parts of a configuration.

use std::collections::{BTreeMap, BTreeSet};

use super::address::Address;
use super::budgets::BudgetsConfig;
use super::clients::ClientConfig;
use super::document::{Read, Reading};
use super::models::ModelConfig;
use super::names::{as_key, instead, shown};
use super::parse::Named;
use super::upstreams::UpstreamConfig;
use crate::budget::{Limits, Price};
use crate::door::{Door, path_of};

/// A configuration as far as it could be read.
pub(super) struct Written {
    pub(super) listen: Read<Address>,
    pub(super) admin: Read<Option<Address>>,
    pub(super) upstreams: Named<UpstreamConfig>,
    pub(super) models: Named<ModelConfig>,
    pub(super) prices: Named<Price>,
    pub(super) budgets: Read<BudgetsConfig>,
    pub(super) clients: Named<ClientConfig>,
}

/// Notes everything that does not go together.
pub(super) fn check(written: &Written, reading: &Reading<'_>) {
    one_address_each(written, reading);
    for (name, model) in parsed(&written.models) {
        let path = format!("models.{}.chain", as_key(name));
        links_are_there(written, model, &path, reading);
        links_share_a_door(written, model, &path, reading);
    }
    names_are_told_apart(written, reading);
    prices_are_of_upstreams(written, reading);
    clients_ask_what_is_there(written, reading);
    tokens_are_told_apart(written, reading);
    dollars_have_prices(written, reading);
}

fn parsed<T>(named: &Named<T>) -> impl Iterator<Item = (&String, &T)> {
    named.iter().filter_map(|(name, value)| value.as_ref().ok().map(|value| (name, value)))
}

fn known<T>(named: &Named<T>) -> Vec<&str> {
    named.keys().map(String::as_str).collect()
}

fn one_address_each(written: &Written, reading: &Reading<'_>) {
    if let (Ok(listen), Ok(Some(admin))) = (&written.listen, &written.admin)
        && listen == admin
    {
        reading.note(
            "admin.address",
            "`admin.address` is where clients call",
            "expected an address of its own, which no client reaches",
        );
    }
}

fn links_are_there(written: &Written, model: &ModelConfig, path: &str, reading: &Reading<'_>) {
    for (at, (upstream, _)) in model.chain.iter().enumerate() {
        if !written.upstreams.contains_key(upstream) {
            let path = format!("{path}[{at}]");
            let problem = format!("`{path}` names the upstream {}, which is not there", shown(upstream));
            let expected = match instead(upstream, &known(&written.upstreams)) {
                none if none.is_empty() => format!("write `[upstreams.{upstream}]`"),
                some => some,
            };
            reading.note(&path, problem, expected);
        }
    }
}

/// Dialects are not translated: who stands in for another must be able to read the same request.
fn links_share_a_door(written: &Written, model: &ModelConfig, path: &str, reading: &Reading<'_>) {
    let upstream =
        |(name, _): &(String, String)| written.upstreams.get(name).and_then(|read| read.as_ref().ok());
    let Some(chain) = model.chain.iter().map(upstream).collect::<Option<Vec<&UpstreamConfig>>>() else {
        return;
    };
    let answers = |door: &Door| chain.iter().all(|upstream| upstream.provider.doors().contains(door));
    let Some(first) = chain.first() else { return };
    if first.provider.doors().iter().any(answers) {
        return;
    }
    let speaks = |upstream: &&UpstreamConfig| {
        let first = upstream.provider.doors().first().map(|door| path_of(*door)).unwrap_or_default();
        format!("{} answers {first}", upstream.provider.name())
    };
    let spoken: BTreeSet<String> = chain.iter().map(speaks).collect();
    let spoken: Vec<String> = spoken.into_iter().collect();
    reading.note(
        path,
        format!("`{path}` has upstreams that share no API ({}, …)", spoken.join(", ")),
        "expected upstreams that answer the same one, because requests are not translated; make two models of it",
    );
}

/// Two names that differ only by case would be taken for each other.
fn names_are_told_apart(written: &Written, reading: &Reading<'_>) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let names = written.models.keys().map(|name| (name, format!("models.{}", as_key(name))));
    let aliases = parsed(&written.models).flat_map(|(name, model)| {
        let path = format!("models.{}.aliases", as_key(name));
        model.aliases.iter().enumerate().map(move |(at, alias)| (alias, format!("{path}[{at}]")))
    });
    for (name, path) in names.chain(aliases) {
        if let Some(earlier) = seen.get(&name.to_ascii_lowercase()) {
            let problem = format!("`{path}` has the same name as `{earlier}`: {}", shown(name));
            reading.note(&path, problem, "expected names that differ in more than case");
        } else {
            seen.insert(name.to_ascii_lowercase(), path);
        }
    }
}

fn prices_are_of_upstreams(written: &Written, reading: &Reading<'_>) {
    for (name, _) in parsed(&written.prices) {
        let upstream = name.split_once('/').map_or(name.as_str(), |(upstream, _)| upstream);
        if !written.upstreams.contains_key(upstream) {
            let path = format!("prices.{}", as_key(name));
            let problem =
                format!("`{path}` is a price of the upstream {}, which is not there", shown(upstream));
            reading.note(&path, problem, instead(upstream, &known(&written.upstreams)));
        }
    }
}

fn clients_ask_what_is_there(written: &Written, reading: &Reading<'_>) {
    let of_alias = |asked: &String| {
        parsed(&written.models).find(|(_, model)| model.aliases.contains(asked)).map(|(name, _)| name)
    };
    for (client, asks) in parsed(&written.clients) {
        for (at, asked) in asks.models.iter().enumerate() {
            if written.models.contains_key(asked) {
                continue;
            }
            let path = format!("clients.{}.models[{at}]", as_key(client));
            let problem = format!("`{path}` names the model {}, which is not there", shown(asked));
            let expected = match of_alias(asked) {
                Some(name) => format!("it is an alias: write {}", shown(name)),
                None => instead(asked, &known(&written.models)),
            };
            reading.note(&path, problem, expected);
        }
    }
}

/// Two clients with one token would be one. That two places hold the same token is seen when they are read.
fn tokens_are_told_apart(written: &Written, reading: &Reading<'_>) {
    let mut seen = BTreeMap::new();
    for (name, client) in parsed(&written.clients) {
        let path = format!("clients.{}.token", as_key(name));
        if let Some(earlier) = seen.insert(&client.token, path.clone()) {
            let problem = format!("`{path}` is the same as `{earlier}`");
            reading.note(&path, problem, "expected a token of its own for each client");
        }
    }
    for (name, upstream) in parsed(&written.upstreams) {
        let key = upstream.provider.http().and_then(|http| http.key.as_ref());
        if let Some(path) = key.and_then(|key| seen.get(key)) {
            let problem = format!("`{path}` is the key of the upstream {}", shown(name));
            reading.note(path, problem, "expected a token that opens nothing but the router");
        }
    }
}

/// A budget in dollars counts nothing where nobody knows the price.
fn dollars_have_prices(written: &Written, reading: &Reading<'_>) {
    let no_budgets = BudgetsConfig::default();
    let budgets = written.budgets.as_ref().unwrap_or(&no_budgets);
    let in_dollars = |limits: &Limits| limits.micro_usd.is_some();
    let mut reached: BTreeMap<&String, String> = BTreeMap::new();
    for (name, client) in parsed(&written.clients) {
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
    for (name, model) in parsed(&written.models) {
        let budget = match reached.get(name) {
            Some(budget) => budget,
            None if in_dollars(&budgets.day) => "budgets.day",
            None => continue,
        };
        for (at, (upstream, model)) in model.chain.iter().enumerate() {
            let price = format!("{upstream}/{model}");
            if written.upstreams.contains_key(upstream) && !written.prices.contains_key(&price) {
                let path = format!("models.{}.chain[{at}]", as_key(name));
                let problem = format!("`{path}` has no price, and `{budget}` is in dollars");
                let write =
                    format!("write `prices.\"{price}\" = {{ input = \"1.25\", output = \"10.00\" }}`");
                reading.note(&path, problem, write);
            }
        }
    }
}
