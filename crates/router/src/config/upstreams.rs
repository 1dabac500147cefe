//! Who answers. The provider is what the configuration says; a URL is never looked at to guess it.

use std::path::PathBuf;

use super::document::{Keys, Read, Value};
use super::limits::{maybe, or};
use super::models::all;
use super::names::instead;
use super::sources::{self, KeySource, UrlSource};
use crate::dialect::{MaximumKey, cannot_be_added};
use crate::door::Door;

/// One upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// What speaks there.
    pub provider: ProviderConfig,
    /// Whether the next in a chain is asked also where this one may have charged for its failure.
    pub retry_ambiguous: bool,
}

/// What speaks at an upstream.
#[derive(Clone, Debug)]
pub enum ProviderConfig {
    /// `OpenAI`.
    OpenAi(Http),
    /// Anthropic.
    Anthropic(Http),
    /// A server that speaks as `OpenAI` does. Its URL is always there.
    Compatible(Http),
    /// Scripts, replayed in the router.
    Scripted {
        /// The files. Never empty.
        scripts: Vec<PathBuf>,
    },
}

/// How an upstream is reached over HTTP.
#[derive(Clone, Debug)]
pub struct Http {
    /// Where; none for the provider's own endpoint.
    pub url: Option<UrlSource>,
    /// The key that opens it, where it wants one.
    pub key: Option<KeySource>,
    /// Roots to trust besides the system's, as PEM.
    pub roots: Option<PathBuf>,
    /// Which HTTP is spoken.
    pub http: HttpVersion,
    /// Whether the way there may be unencrypted, also to another machine.
    pub plain_http: bool,
    /// The output maximum that a compatible server knows.
    pub maximum_key: Option<MaximumKey>,
    /// The keys at the top of a request that a compatible server takes besides those of the API.
    pub extra_request_keys: Vec<String>,
}

/// Which HTTP is spoken to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2, also where nobody offers it.
    Two,
    /// What both sides know, by TLS; HTTP/1.1 without.
    #[default]
    Negotiated,
}

const PROVIDERS: &[&str] = &["openai", "anthropic", "compatible", "scripted"];
const VERSIONS: &[(&str, HttpVersion)] =
    &[("1.1", HttpVersion::One), ("2", HttpVersion::Two), ("negotiated", HttpVersion::Negotiated)];
const MAXIMA: &[MaximumKey] = &[MaximumKey::MaxTokens, MaximumKey::MaxCompletionTokens, MaximumKey::NPredict];

impl ProviderConfig {
    /// The name as it is written.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::OpenAi(_) => "openai",
            Self::Anthropic(_) => "anthropic",
            Self::Compatible(_) => "compatible",
            Self::Scripted { .. } => "scripted",
        }
    }

    /// The doors that it answers at. Dialects are not translated.
    #[must_use]
    pub fn doors(&self) -> &'static [Door] {
        match self {
            Self::OpenAi(_) => &[Door::Chat, Door::Responses, Door::Completions, Door::Embeddings],
            Self::Anthropic(_) => &[Door::Messages, Door::CountTokens],
            Self::Compatible(_) | Self::Scripted { .. } => &[
                Door::Chat,
                Door::Responses,
                Door::Messages,
                Door::CountTokens,
                Door::Completions,
                Door::Embeddings,
            ],
        }
    }

    /// How it is reached, if it is over HTTP.
    #[must_use]
    pub fn http(&self) -> Option<&Http> {
        match self {
            Self::OpenAi(http) | Self::Anthropic(http) | Self::Compatible(http) => Some(http),
            Self::Scripted { .. } => None,
        }
    }
}

/// `[upstreams.NAME]`.
pub(super) fn upstream(value: &Value<'_, '_>) -> Read<UpstreamConfig> {
    let mut keys = value.keys("a table with `provider` in it")?;
    let provider = keys.need("provider", "`provider` with one of: openai, anthropic, compatible, scripted");
    let retry_ambiguous = or(keys.get("retry_ambiguous"), false, Value::flag);
    let provider = provider?; // What else may stand there depends on it.
    let name = provider.text("the name of a provider")?;
    let read = match name {
        "openai" => http(value, &mut keys, name).map(ProviderConfig::OpenAi),
        "anthropic" => http(value, &mut keys, name).map(ProviderConfig::Anthropic),
        "compatible" => http(value, &mut keys, name).map(ProviderConfig::Compatible),
        "scripted" => scripts(&mut keys).map(|scripts| ProviderConfig::Scripted { scripts }),
        _ => return provider.refuse("is not a provider that herma knows", instead(name, PROVIDERS)),
    };
    keys.done();
    Ok(UpstreamConfig { provider: read?, retry_ambiguous: retry_ambiguous? })
}

fn http<'r, 't>(upstream: &Value<'r, 't>, keys: &mut Keys<'r, 't>, provider: &str) -> Read<Http> {
    let plain_http = or(keys.get("plain_http"), false, Value::flag);
    let url = maybe(keys.get("url"), |value| sources::url(value, plain_http.unwrap_or(false)));
    let key = maybe(keys.get("key"), sources::key);
    let roots = maybe(keys.get("roots"), Value::file_path);
    let http = or(keys.get("http"), HttpVersion::default(), version);
    let maximum_key = match provider {
        "compatible" => maybe(keys.get("maximum_key"), maximum),
        _ => Ok(None),
    };
    let extra_request_keys = match provider {
        "compatible" => or(keys.get("extra_request_keys"), Vec::new(), request_keys),
        _ => Ok(Vec::new()),
    };
    match (&url, &key) {
        (Ok(None), _) if provider == "compatible" => upstream.refuse(
            "has no `url`",
            "write `url = \"http://127.0.0.1:8000\"`, or where it lies: `url = { env = \"NAME\" }`",
        )?,
        (Ok(None), Ok(None)) => {
            upstream.refuse("has no `key`", "write where it lies: `key = { env = \"NAME\" }`")?;
        }
        _ => {}
    }
    Ok(Http {
        url: url?,
        key: key?,
        roots: roots?,
        http: http?,
        plain_http: plain_http?,
        maximum_key: maximum_key?,
        extra_request_keys: extra_request_keys?,
    })
}

fn scripts(keys: &mut Keys<'_, '_>) -> Read<Vec<PathBuf>> {
    const EXPECTED: &str = "`scripts = [\"script.yaml\"]`";
    let value = keys.need("scripts", EXPECTED)?;
    let list = value.list(EXPECTED)?;
    if list.is_empty() {
        return value
            .refuse("is empty, so that nothing would ever be answered", format!("expected {EXPECTED}"));
    }
    all(&list, Value::file_path)
}

fn version(value: &Value<'_, '_>) -> Read<HttpVersion> {
    let words: Vec<&str> = VERSIONS.iter().map(|(word, _)| *word).collect();
    let text = value.text("one of: `1.1`, `2`, `negotiated`, in quotes")?;
    let known = VERSIONS.iter().find(|(word, _)| *word == text).map(|(_, version)| *version);
    known.map_or_else(|| value.refuse("is no version of HTTP", instead(text, &words)), Ok)
}

fn request_keys(value: &Value<'_, '_>) -> Read<Vec<String>> {
    let list = value.list("a list of keys, like `[\"top_k\"]`")?;
    all(&list, |value| {
        let key = value.text("the name of a key, like `top_k`")?;
        match cannot_be_added(key) {
            None => Ok(key.to_owned()),
            Some(why) => value.refuse(why, "leave it out"),
        }
    })
}

fn maximum(value: &Value<'_, '_>) -> Read<MaximumKey> {
    let words: Vec<&str> = MAXIMA.iter().map(|key| key.name()).collect();
    let text = value.text("the name of a key, like `max_tokens`")?;
    let known = MAXIMA.iter().find(|key| key.name() == text).copied();
    known.map_or_else(|| value.refuse("is no output maximum of chat", instead(text, &words)), Ok)
}
