//! Keys, endpoints and tokens, read from their sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use herma_core::secret::Secret;
use herma_core::visible::visible_line;

use super::Config;
use super::names::{as_key, shown};
use super::private_file::read_secret;
use super::problem::{BadConfig, Problem};
use super::sources::{KeySource, UrlSource};
use super::url::check_url;

/// The shortest token. A shorter one can be guessed.
const LEAST_TOKEN: usize = 16;

/// Sources besides files. herma reads the environment in one place, which implements this.
pub trait Lookup {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// An item of the system's keyring. The error holds nothing secret.
    fn keyring(&self, service: &str, user: &str) -> Result<String, String>;
}

/// Every secret of a configuration.
#[derive(Clone, Default)]
pub struct Secrets {
    keys: BTreeMap<String, Secret<String>>,
    urls: BTreeMap<String, Secret<String>>,
    tokens: BTreeMap<String, Secret<String>>,
}

impl Secrets {
    /// The key of an upstream, where it wants one.
    #[must_use]
    pub fn key(&self, upstream: &str) -> Option<&Secret<String>> {
        self.keys.get(upstream)
    }

    /// The URL of an upstream, without a slash at its end. None where it is the provider's own, which is no secret.
    #[must_use]
    pub fn url(&self, upstream: &str) -> Option<&Secret<String>> {
        self.urls.get(upstream)
    }

    /// The token of a client.
    #[must_use]
    pub fn token(&self, client: &str) -> Option<&Secret<String>> {
        self.tokens.get(client)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secrets]")
    }
}

impl Config {
    /// Reads every key, URL and token. All that cannot be had are named, none is shown.
    pub fn secrets(&self, look: &dyn Lookup) -> Result<Secrets, BadConfig> {
        let mut secrets = Secrets::default();
        let mut problems = Vec::new();
        let mut keep =
            |kept: &mut BTreeMap<_, _>, name: &str, path: String, read: Result<String, Problem>| match read {
                Ok(secret) => drop(kept.insert(name.to_owned(), Secret::new(secret))),
                Err(bad) => problems.push(Problem { problem: format!("`{path}` {}", bad.problem), ..bad }),
            };
        for (name, upstream) in &self.upstreams {
            let path = format!("upstreams.{}", as_key(name));
            let Some(http) = upstream.provider.http() else { continue };
            if let Some(source) = &http.key {
                keep(&mut secrets.keys, name, format!("{path}.key"), key(source, look));
            }
            if let Some(source) = &http.url {
                keep(&mut secrets.urls, name, format!("{path}.url"), url(source, http.plain_http, look));
            }
        }
        for (name, client) in &self.clients {
            let path = format!("clients.{}.token", as_key(name));
            keep(&mut secrets.tokens, name, path, key(&client.token, look).and_then(long_enough));
        }
        told_apart(&secrets, &mut problems);
        if problems.is_empty() { Ok(secrets) } else { Err(BadConfig::new(&self.file, problems)) }
    }
}

fn key(source: &KeySource, look: &dyn Lookup) -> Result<String, Problem> {
    match source {
        KeySource::Environment(name) => in_variable(name, look),
        KeySource::File(path) => {
            let holder = format!("the file `{}`", visible_line(&path.to_string_lossy()));
            let text =
                read_secret(path).map_err(|why| Problem::new(format!("is in {holder}, which {why}"), ""))?;
            value_alone(&text, &holder)
        }
        KeySource::Keyring { service, user } => {
            let text = look.keyring(service, user).map_err(|why| {
                Problem::new(format!("could not be had from the keyring: {}", visible_line(&why)), "")
            })?;
            value_alone(&text, "the keyring")
        }
    }
}

fn in_variable(name: &str, look: &dyn Lookup) -> Result<String, Problem> {
    let holder = format!("the variable `{name}`");
    let Some(value) = look.variable(name) else {
        let problem = format!("is in {holder}, which is not set");
        return Err(Problem::new(problem, "set it where the router is started"));
    };
    let text = value.into_string().map_err(|_| Problem::new(format!("is not a text in {holder}"), ""))?;
    value_alone(&text, &holder)
}

/// It goes into a header, and nothing else may. The end of its line is no part of it.
fn value_alone(text: &str, holder: &str) -> Result<String, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::new(format!("is empty in {holder}"), "expected the value alone"));
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        let problem = format!("holds a blank or a character outside of ASCII in {holder}");
        return Err(Problem::new(problem, "expected the value alone"));
    }
    Ok(text.to_owned())
}

fn url(source: &UrlSource, plain_http: bool, look: &dyn Lookup) -> Result<String, Problem> {
    let text = match source {
        UrlSource::Literal(url) => return Ok(url.expose().clone()),
        UrlSource::Environment(name) => in_variable(name, look)?,
        UrlSource::File(path) => key(&KeySource::File(path.clone()), look)?,
    };
    check_url(&text, plain_http).map_err(|bad| Problem::new(bad.problem, bad.expected))
}

fn long_enough(token: String) -> Result<String, Problem> {
    if token.len() >= LEAST_TOKEN {
        return Ok(token);
    }
    Err(Problem::new(
        "is so short that it can be guessed",
        format!("expected at least {LEAST_TOKEN} characters, like those of `openssl rand -hex 32`"),
    ))
}

/// A token identifies one client, and is never the key of an upstream.
fn told_apart(secrets: &Secrets, problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<&String, &String> = BTreeMap::new();
    for (client, token) in &secrets.tokens {
        let path = format!("clients.{}.token", as_key(client));
        if let Some(earlier) = seen.insert(token.expose(), client) {
            problems.push(Problem::new(
                format!("`{path}` is the same as that of {}", shown(earlier)),
                "expected a token of its own for each client",
            ));
        }
        for (upstream, _) in secrets.keys.iter().filter(|(_, key)| key.expose() == token.expose()) {
            problems.push(Problem::new(
                format!("`{path}` is the key of the upstream {}", shown(upstream)),
                "expected a token that is valid for the router alone",
            ));
        }
    }
}
