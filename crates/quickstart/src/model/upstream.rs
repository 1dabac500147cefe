//! The upstream in the router's configuration: an edit that keeps everything else, comments too.

use std::net::IpAddr;

use herma_core::admission::NetworkClass;
use herma_harness::ROUTER_FILE;
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::credential::Found;
use crate::choices::ProviderChoice;
use crate::error::QuickstartError;

/// The first lines of a new configuration.
const HEAD: &str = "# How runs reach models. `herma router example` prints a configuration with every key. It holds no secret.\n\n";

/// An upstream as it should be.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) provider: ProviderChoice,
    pub(crate) url: Option<&'a str>,
    pub(crate) key: &'a Found,
}

/// The text with this upstream; none where it is there already.
pub(crate) fn with_upstream(text: &str, wanted: &Wanted<'_>) -> Result<Option<String>, QuickstartError> {
    let bad = |why: String| {
        QuickstartError::bad(
            format!("{ROUTER_FILE} cannot be changed: {why}"),
            format!("write `[upstreams.{}]` into it yourself; `herma router example` shows how", wanted.name),
        )
    };
    let mut document: DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| bad(e.message().to_owned()))?;
    let upstreams = document.entry("upstreams").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let upstreams = upstreams.as_table_like_mut().ok_or_else(|| bad("`upstreams` is no table".to_owned()))?;
    if upstreams.get(wanted.name).is_none() {
        upstreams.insert(wanted.name, Item::Table(Table::new()));
    }
    let upstream = upstreams.get_mut(wanted.name).and_then(Item::as_table_like_mut);
    let upstream = upstream.ok_or_else(|| bad(format!("`upstreams.{}` is no table", wanted.name)))?;
    let provider = wanted.provider.as_str();
    match upstream.get("provider").and_then(Item::as_str) {
        Some(known) if known == provider => {}
        None => drop(upstream.insert("provider", value(provider))),
        Some(known) => {
            return Err(QuickstartError::bad(
                format!("{ROUTER_FILE} has an upstream `{}` of the provider {known}", wanted.name),
                "choose another name with --upstream NAME",
            ));
        }
    }
    if let Some(url) = wanted.url
        && upstream.get("url").and_then(Item::as_str) != Some(url)
    {
        upstream.insert("url", value(url));
    }
    match key(wanted.key) {
        Some(table) if upstream.get("key").is_some_and(|known| is_same(known, &table)) => {}
        Some(table) => drop(upstream.insert("key", Item::Value(Value::InlineTable(table)))),
        None => drop(upstream.remove("key")),
    }
    let changed = document.to_string();
    Ok(match (changed == text, text.trim().is_empty()) {
        (true, _) => None,
        (false, true) => Some(format!("{HEAD}{changed}")),
        (false, false) => Some(changed),
    })
}

fn value(text: &str) -> Item {
    Item::Value(Value::from(text))
}

/// The source of the key, as the configuration names it.
fn key(found: &Found) -> Option<InlineTable> {
    let mut table = InlineTable::new();
    match found {
        Found::None => return None,
        Found::Variable(name) => drop(table.insert("env", Value::from(name.as_str()))),
        Found::File(path) => drop(table.insert("file", Value::from(&*path.to_string_lossy()))),
        Found::Kept { file, .. } | Found::Later(file) => {
            drop(table.insert("file", Value::from(file.as_str())));
        }
        Found::Keyring { service, user } => {
            let mut inner = InlineTable::new();
            inner.insert("service", Value::from(service.as_str()));
            inner.insert("user", Value::from(user.as_str()));
            drop(table.insert("keyring", Value::InlineTable(inner)));
        }
    }
    Some(table)
}

/// Whether two sources are the same, however they are written.
fn is_same(known: &Item, wanted: &InlineTable) -> bool {
    let Some(known) = known.as_table_like() else { return false };
    let text = |item: Option<&Item>, key: &str| -> Option<String> {
        item?.as_table_like()?.get(key)?.as_str().map(str::to_owned)
    };
    known.len() == wanted.len()
        && wanted.iter().all(|(name, value)| match value {
            Value::InlineTable(inner) => {
                inner.iter().all(|(key, value)| text(known.get(name), key).as_deref() == value.as_str())
            }
            value => known.get(name).and_then(Item::as_str) == value.as_str(),
        })
}

/// The network of an address, by its host. A name that is not this machine's counts as public.
pub(crate) fn network_of(url: &str) -> NetworkClass {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => NetworkClass::Loopback,
        Ok(IpAddr::V4(address)) if address.is_private() || address.is_link_local() => NetworkClass::Private,
        Ok(IpAddr::V6(address)) if address.is_unique_local() => NetworkClass::Private,
        Err(_) if host == "localhost" || host.ends_with(".localhost") => NetworkClass::Loopback,
        Ok(_) | Err(_) => NetworkClass::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(name: &'a str, key: &'a Found) -> Wanted<'a> {
        Wanted { name, provider: ProviderChoice::Anthropic, url: None, key }
    }

    fn variable() -> Found {
        Found::Variable("ANTHROPIC_API_KEY".to_owned())
    }

    #[test]
    fn a_new_configuration_has_the_upstream_and_says_what_it_is() {
        let text = with_upstream("", &wanted("anthropic", &variable())).unwrap().unwrap();
        let expected = format!(
            "{HEAD}[upstreams.anthropic]\nprovider = \"anthropic\"\nkey = {{ env = \"ANTHROPIC_API_KEY\" }}\n"
        );
        assert_eq!(text, expected);
        // Once more there is nothing to do.
        assert_eq!(with_upstream(&text, &wanted("anthropic", &variable())).unwrap(), None);
    }

    #[test]
    fn everything_else_stays_as_it_was_written() {
        let before = "# mine\nstate = \"state\" # of the router\n\n[upstreams.local] # at home\nprovider = \"compatible\"\nurl = 'http://127.0.0.1:8000'\n\n[prices] # looked up\n";
        let text = with_upstream(before, &wanted("anthropic", &variable())).unwrap().unwrap();
        for line in before.lines().filter(|line| !line.is_empty()) {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        assert!(text.contains("[upstreams.anthropic]\nprovider = \"anthropic\"\n"), "{text}");
        // Another key in place of the one before, and nothing else.
        let kept = Found::Later("anthropic.key".to_owned());
        let other = with_upstream(&text, &wanted("anthropic", &kept)).unwrap().unwrap();
        assert_eq!(other, text.replace("{ env = \"ANTHROPIC_API_KEY\" }", "{ file = \"anthropic.key\" }"));
    }

    #[test]
    fn a_key_that_is_written_in_another_way_is_the_same_key() {
        let text = "[upstreams.anthropic]\nprovider = \"anthropic\"\n[upstreams.anthropic.key]\nkeyring.service = 'a'\nkeyring.user = \"b\"\n";
        let same = Found::Keyring { service: "a".to_owned(), user: "b".to_owned() };
        assert_eq!(with_upstream(text, &wanted("anthropic", &same)).unwrap(), None);
        let other = Found::Keyring { service: "a".to_owned(), user: "c".to_owned() };
        assert!(with_upstream(text, &wanted("anthropic", &other)).unwrap().is_some());
    }

    #[test]
    fn an_upstream_of_another_provider_is_not_taken_over() {
        let text = "[upstreams.anthropic]\nprovider = \"compatible\"\nurl = \"http://127.0.0.1:1\"\n";
        let error = with_upstream(text, &wanted("anthropic", &variable())).unwrap_err().to_string();
        assert!(error.contains("of the provider compatible"), "{error}");
        assert!(with_upstream("[upstreams", &wanted("anthropic", &variable())).is_err());
        assert!(with_upstream("upstreams = 1", &wanted("anthropic", &variable())).is_err());
    }

    #[test]
    fn the_network_is_that_of_the_host() {
        for (url, network) in [
            ("http://127.0.0.1:8000/v1", NetworkClass::Loopback),
            ("http://[::1]:8000", NetworkClass::Loopback),
            ("http://localhost:8000", NetworkClass::Loopback),
            ("https://10.1.2.3/v1", NetworkClass::Private),
            ("https://192.168.0.2", NetworkClass::Private),
            ("https://[fd00::1]/v1", NetworkClass::Private),
            ("https://models.example.org", NetworkClass::Public),
            ("https://8.8.8.8", NetworkClass::Public),
        ] {
            assert_eq!(network_of(url), network, "{url}");
        }
    }
}
