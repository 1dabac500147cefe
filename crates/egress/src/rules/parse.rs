//! Reads an entry of the list.

use std::str::FromStr;

use herma_core::visible::visible_line;

use super::{Method, PLAIN_PORT, Pattern, READING, Rule, Scheme, TLS_PORT};
use crate::addresses;
use crate::host::{BadHost, Host, Name, read_port, split_port};

/// The longest entry that is repeated in a message.
const MAX_SHOWN_CHARS: usize = 80;

const EXPECTED: &str =
    "expected `host`, `*.domain`, `host:port`, `http://host` or `GET,POST http://host:port`";

/// An entry is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the egress entry `{entry}`: {problem}; {EXPECTED}")]
pub struct BadRule {
    /// The entry, made safe to show.
    pub entry: String,
    /// The problem.
    pub problem: String,
}

impl FromStr for Rule {
    type Err = BadRule;

    fn from_str(entry: &str) -> Result<Self, BadRule> {
        read(entry).map_err(|problem| BadRule { entry: shown(entry), problem })
    }
}

/// The beginning of a text that somebody else wrote, made safe to show.
pub(crate) fn shown(text: &str) -> String {
    let start: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    let more = if start.len() < text.len() { "..." } else { "" };
    format!("{}{more}", visible_line(&start))
}

fn read(entry: &str) -> Result<Rule, String> {
    let (methods, place) = match entry.split_once(' ') {
        Some((methods, place)) => (Some(methods), place),
        None => (None, entry),
    };
    let (scheme, usual, place) = match (place.strip_prefix("http://"), methods) {
        (Some(place), None) => (Scheme::Plain(READING.to_vec()), PLAIN_PORT, place),
        (Some(place), Some(methods)) => (Scheme::Plain(read_methods(methods)?), PLAIN_PORT, place),
        (None, None) => (Scheme::Tls, TLS_PORT, place),
        (None, Some(_)) => return Err("methods are for plain HTTP, with `http://` after them".to_owned()),
    };
    if place.contains("://") {
        return Err("TLS is written without a scheme, plain HTTP with `http://`".to_owned());
    }
    if place.contains(['/', '?', '#', '@']) {
        return Err("a rule has a host and a port, without user, path or query".to_owned());
    }
    let (host, port) = split_port(place);
    let port = port.map_or(Ok(usual), read_port).map_err(said)?;
    Ok(Rule { pattern: pattern(host)?, port, scheme })
}

fn pattern(host: &str) -> Result<Pattern, String> {
    if let Some(domain) = host.strip_prefix("*.") {
        return match Name::parse(domain) {
            Ok(domain) => Ok(Pattern::Below(domain)),
            Err(BadHost::Short) => {
                Err("a domain after `*.` has a dot in it: a whole top-level domain is too much".to_owned())
            }
            Err(bad) => Err(said(bad)),
        };
    }
    if host.contains('*') {
        return Err("`*` stands only at the beginning, as in `*.example.org`".to_owned());
    }
    let host = Host::parse(host).map_err(said)?;
    match &host {
        Host::Address(address) if addresses::refused(*address).is_some() => {
            Err("the address is not public, and only public ones are reached".to_owned())
        }
        _ => Ok(Pattern::Exactly(host)),
    }
}

fn read_methods(text: &str) -> Result<Vec<Method>, String> {
    let mut methods = Vec::new();
    for word in text.split(',') {
        let method = Method::of(word).ok_or_else(|| {
            let known: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
            format!("`{}` is not one of {}", shown(word), known.join(", "))
        })?;
        methods.push(method);
    }
    methods.sort_unstable();
    methods.dedup();
    Ok(methods)
}

#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn said(bad: BadHost) -> String {
    bad.to_string()
}
