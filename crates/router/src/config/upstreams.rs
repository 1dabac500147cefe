//! The upstreams. The configuration names the provider; the URL is never used to guess it.

use std::path::{Path, PathBuf};

use herma_dialect::endpoint::Endpoint;
use herma_dialect::{MaximumKey, cannot_be_added};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::sources::{KeySource, SourceTable, UrlSource, UrlValue};
use super::table::{Table, TableType};
use super::values::{FilePath, Flaw, text, word};

/// One upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Its provider.
    pub provider: ProviderConfig,
    /// Whether the next upstream of a chain is tried after a failure that this one may have charged.
    pub retry_ambiguous: bool,
}

/// The provider of an upstream.
#[derive(Clone, Debug)]
pub enum ProviderConfig {
    /// `OpenAI`.
    OpenAi(Http),
    /// Anthropic.
    Anthropic(Http),
    /// A server with the API of `OpenAI`. It always has a URL.
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
    /// Its URL; none for the provider's own.
    pub url: Option<UrlSource>,
    /// Its key, if it has one.
    pub key: Option<KeySource>,
    /// Root certificates besides the system's, as PEM.
    pub roots: Option<PathBuf>,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// Whether plain HTTP to another machine is permitted.
    pub plain_http: bool,
    /// The key for the output maximum that a compatible server knows.
    pub maximum_key: Option<MaximumKey>,
    /// Request keys that a compatible server takes besides those of the API.
    pub extra_request_keys: Vec<String>,
}

/// The version of HTTP of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2, also without negotiation.
    Two,
    /// Negotiated by TLS; HTTP/1.1 without TLS.
    #[default]
    Negotiated,
}

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

    /// Its endpoints. Dialects are not translated.
    #[must_use]
    pub fn endpoints(&self) -> &'static [Endpoint] {
        match self {
            Self::OpenAi(_) => {
                &[Endpoint::Chat, Endpoint::Responses, Endpoint::Completions, Endpoint::Embeddings]
            }
            Self::Anthropic(_) => &[Endpoint::Messages, Endpoint::CountTokens],
            Self::Compatible(_) | Self::Scripted { .. } => &[
                Endpoint::Chat,
                Endpoint::Responses,
                Endpoint::Messages,
                Endpoint::CountTokens,
                Endpoint::Completions,
                Endpoint::Embeddings,
            ],
        }
    }

    /// How it is reached, if that is over HTTP.
    #[must_use]
    pub fn http(&self) -> Option<&Http> {
        match self {
            Self::OpenAi(http) | Self::Anthropic(http) | Self::Compatible(http) => Some(http),
            Self::Scripted { .. } => None,
        }
    }
}

/// A provider's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderName {
    OpenAi,
    Anthropic,
    Compatible,
    Scripted,
}

/// `[upstreams.NAME]`. The provider decides which keys it may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamTable {
    #[serde(deserialize_with = "provider")]
    provider: ProviderName,
    #[serde(default)]
    retry_ambiguous: bool,
    plain_http: Option<bool>,
    url: Option<Spanned<UrlValue>>,
    key: Option<Spanned<Table<SourceTable>>>,
    roots: Option<FilePath>,
    #[serde(default, deserialize_with = "version")]
    http: Option<HttpVersion>,
    #[serde(default, deserialize_with = "maximum")]
    maximum_key: Option<MaximumKey>,
    extra_request_keys: Option<Vec<RequestKey>>,
    scripts: Option<Spanned<Vec<FilePath>>>,
}

impl TableType for UpstreamTable {
    const EXPECTING: &'static str = "a table with `provider` in it";
}

/// The place of a problem in an upstream.
pub(super) enum UpstreamPlace {
    /// The table.
    Table,
    /// A key that the provider does not have.
    UnknownKey(&'static str),
    /// The value of a key, at this byte.
    Value(&'static str, usize),
}

const COMMON_KEYS: &[&str] = &["provider", "retry_ambiguous"];
const HTTP_KEYS: &[&str] = &["plain_http", "url", "key", "roots", "http"];
const COMPATIBLE_KEYS: &[&str] = &["maximum_key", "extra_request_keys"];

impl ProviderName {
    /// The keys that an upstream of this provider may have.
    pub(super) fn keys(self) -> Vec<&'static str> {
        match self {
            Self::OpenAi | Self::Anthropic => [COMMON_KEYS, HTTP_KEYS].concat(),
            Self::Compatible => [COMMON_KEYS, HTTP_KEYS, COMPATIBLE_KEYS].concat(),
            Self::Scripted => [COMMON_KEYS, &["scripts"]].concat(),
        }
    }
}

impl UpstreamTable {
    /// The upstream, or its first problem.
    pub(super) fn resolve(&self, base: &Path) -> Result<UpstreamConfig, (UpstreamPlace, Flaw)> {
        let known = self.provider.keys();
        if let Some(key) = self.written().find(|key| !known.contains(key)) {
            let expected = format!("expected one of: {}", known.join(", "));
            return Err((
                UpstreamPlace::UnknownKey(key),
                Flaw::new(format!("unknown key `{key}`"), expected),
            ));
        }
        let provider = match self.provider {
            ProviderName::OpenAi => ProviderConfig::OpenAi(self.over_http(base)?),
            ProviderName::Anthropic => ProviderConfig::Anthropic(self.over_http(base)?),
            ProviderName::Compatible => ProviderConfig::Compatible(self.over_http(base)?),
            ProviderName::Scripted => ProviderConfig::Scripted { scripts: self.scripts(base)? },
        };
        Ok(UpstreamConfig { provider, retry_ambiguous: self.retry_ambiguous })
    }

    /// The keys that not every provider has and that are written.
    fn written(&self) -> impl Iterator<Item = &'static str> {
        [
            ("plain_http", self.plain_http.is_some()),
            ("url", self.url.is_some()),
            ("key", self.key.is_some()),
            ("roots", self.roots.is_some()),
            ("http", self.http.is_some()),
            ("maximum_key", self.maximum_key.is_some()),
            ("extra_request_keys", self.extra_request_keys.is_some()),
            ("scripts", self.scripts.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, is_written)| is_written.then_some(key))
    }

    fn over_http(&self, base: &Path) -> Result<Http, (UpstreamPlace, Flaw)> {
        let plain_http = self.plain_http.unwrap_or(false);
        let url = self.url.as_ref().map(|url| {
            let at = UpstreamPlace::Value("url", url.span().start);
            url.get_ref().resolve(plain_http, base).map_err(|flaw| (at, flaw))
        });
        let key = self.key.as_ref().map(|key| {
            let at = UpstreamPlace::Value("key", key.span().start);
            key.get_ref().resolve(base).map_err(|flaw| (at, flaw))
        });
        let missing = match self.provider {
            ProviderName::Compatible if url.is_none() => Some((
                "has no `url`",
                "write `url = \"http://127.0.0.1:8000\"`, or its source: `url = { env = \"NAME\" }`",
            )),
            _ if url.is_none() && key.is_none() => {
                Some(("has no `key`", "write its source: `key = { env = \"NAME\" }`"))
            }
            _ => None,
        };
        if let Some((problem, expected)) = missing {
            return Err((UpstreamPlace::Table, Flaw::new(problem, expected)));
        }
        let keys = self.extra_request_keys.iter().flatten().map(|key| key.0.clone());
        Ok(Http {
            url: url.transpose()?,
            key: key.transpose()?,
            roots: self.roots.as_ref().map(|roots| roots.from(base)),
            http: self.http.unwrap_or_default(),
            plain_http,
            maximum_key: self.maximum_key,
            extra_request_keys: keys.collect(),
        })
    }

    fn scripts(&self, base: &Path) -> Result<Vec<PathBuf>, (UpstreamPlace, Flaw)> {
        const EXPECTED: &str = "`scripts = [\"script.yaml\"]`";
        let Some(scripts) = &self.scripts else {
            return Err((UpstreamPlace::Table, Flaw::new("has no `scripts`", format!("write {EXPECTED}"))));
        };
        if scripts.get_ref().is_empty() {
            let flaw =
                Flaw::new("is empty, so that no request has an answer", format!("expected {EXPECTED}"));
            return Err((UpstreamPlace::Value("scripts", scripts.span().start), flaw));
        }
        Ok(scripts.get_ref().iter().map(|script| script.from(base)).collect())
    }
}

fn provider<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProviderName, D::Error> {
    let names = [
        ("openai", ProviderName::OpenAi),
        ("anthropic", ProviderName::Anthropic),
        ("compatible", ProviderName::Compatible),
        ("scripted", ProviderName::Scripted),
    ];
    word(deserializer, "the name of a provider", "is not a provider that herma knows", &names)
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HttpVersion>, D::Error> {
    let versions =
        [("1.1", HttpVersion::One), ("2", HttpVersion::Two), ("negotiated", HttpVersion::Negotiated)];
    let expecting = "one of: `1.1`, `2`, `negotiated`, in quotes";
    word(deserializer, expecting, "is no version of HTTP", &versions).map(Some)
}

fn maximum<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MaximumKey>, D::Error> {
    let keys = [MaximumKey::MaxTokens, MaximumKey::MaxCompletionTokens, MaximumKey::NPredict];
    let keys = keys.map(|key| (key.name(), key));
    let expecting = "the name of a key, like `max_tokens`";
    word(deserializer, expecting, "is no output maximum of chat", &keys).map(Some)
}

/// An entry of `extra_request_keys`.
struct RequestKey(String);

impl<'de> Deserialize<'de> for RequestKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "the name of a key, like `top_k`", |key| match cannot_be_added(key) {
            None => Ok(Self(key.to_owned())),
            Some(why) => Err(Flaw::new(why, "leave it out")),
        })
    }
}
