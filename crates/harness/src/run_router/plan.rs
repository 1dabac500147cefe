//! The plan of a run's router: the upstreams that the contract needs, and the models that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::contract::{Contract, ModelChoice};
use herma_core::engine::EngineName;
use herma_router::budget::Limits;
use herma_router::config::{Config, KeySource, ProviderConfig, Secrets, UpstreamConfig, UrlSource};
use herma_router::endpoint::Endpoint;
use herma_router::grant::{AdmittedModel, Grant, Link};
use herma_router::upstream::{BadUpstream, Upstream};

use super::{ROUTER_FILE, in_words};
use crate::secret_source::SecretSource;

/// The most output of one answer where the configuration says nothing of the model, and where a client names no maximum.
const USUAL_OUTPUT: u64 = 8192;
/// The most output of one answer where the configuration says nothing of the model.
const USUAL_CEILING: u64 = 131_072;

/// The plan of a run's router.
#[derive(Clone, Debug)]
pub(crate) struct RouterPlan {
    /// The configuration with nothing in it that the run does not need.
    pub(crate) config: Config,
    pub(crate) secrets: Secrets,
    pub(crate) models: BTreeMap<String, Arc<AdmittedModel>>,
    /// The name that the contract's model is asked by.
    pub(crate) model: String,
    limits: Limits,
}

/// Why no router can serve a contract.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouterPlanError {
    #[error("router.toml has no upstream `{0}`")]
    NoUpstream(String),
    #[error("router.toml has no price of `{0}`, and limits.usd needs one")]
    NoPrice(String),
    #[error("two models of the contract would be asked by the name `{0}`")]
    AmbiguousName(String),
    /// The configuration cannot be used; the text names no path of this machine.
    #[error("{0}")]
    Config(String),
}

impl RouterPlanError {
    /// The next step for the operator, where the cause tells it.
    pub(crate) fn next_step(&self) -> Option<String> {
        match self {
            Self::NoPrice(name) => Some(format!(
                "Add `prices.\"{name}\" = {{ input = \"1.25\", output = \"10.00\" }}` with the real prices to router.toml, or use \
                 `limits.tokens` in place of `limits.usd`."
            )),
            Self::NoUpstream(_) | Self::AmbiguousName(_) | Self::Config(_) => None,
        }
    }

    fn config(text: String, config: &Config) -> Self {
        Self::Config(placeless(text, config))
    }
}

/// A model that a contract names, at the upstream that serves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelLink<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
}

impl<'a> ModelLink<'a> {
    /// Every model that the contract names: its own, those to fall back to, and those for side work.
    pub(crate) fn all(choice: &'a ModelChoice) -> impl Iterator<Item = Self> {
        let own = Self { provider: &choice.provider, model: &choice.model };
        let others = choice.fallback.iter().chain(&choice.auxiliary);
        std::iter::once(own).chain(others.map(|model| {
            let (provider, model) = choice.named(model);
            Self { provider, model }
        }))
    }

    /// `provider/model`.
    pub(crate) fn name(self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Its upstream in the configuration.
    pub(crate) fn upstream(self, config: &Config) -> Option<&UpstreamConfig> {
        config.upstreams.get(self.provider)
    }
}

impl RouterPlan {
    /// The contract's part of the configuration, or what the configuration lacks.
    pub(crate) fn draw(
        config: &Config,
        contract: &Contract,
        choice: &ModelChoice,
        secrets: &SecretSource,
    ) -> Result<Self, RouterPlanError> {
        let limits = Limits {
            requests: None,
            tokens: contract.terms.limits.tokens.map(|tokens| tokens.0),
            micro_usd: contract.terms.limits.usd.map(|usd| usd.0),
        };
        for link in ModelLink::all(choice) {
            if link.upstream(config).is_none() {
                return Err(RouterPlanError::NoUpstream(link.provider.to_owned()));
            }
            if limits.micro_usd.is_some() && !config.prices.contains_key(&link.name()) {
                return Err(RouterPlanError::NoPrice(link.name()));
            }
        }
        let mut needed = config.clone();
        needed.upstreams.retain(|name, _| ModelLink::all(choice).any(|link| link.provider == name));
        needed.clients.clear();
        let secrets = needed
            .secrets(secrets.0.as_ref())
            .map_err(|bad| RouterPlanError::config(in_words(&bad), &needed))?;
        let models = models(config, choice)?;
        let plan = Self { config: needed, secrets, models, model: choice.model.clone(), limits };
        // An upstream that cannot be used is reported before anything depends on it.
        plan.upstreams()
            .map_err(|bad| RouterPlanError::config(format!("{ROUTER_FILE}: {bad}"), &plan.config))?;
        Ok(plan)
    }

    /// The provider behind each upstream.
    pub(crate) fn providers(&self) -> BTreeMap<String, String> {
        let upstreams = self.config.upstreams.iter();
        upstreams.map(|(name, upstream)| (name.clone(), upstream.provider.name().to_owned())).collect()
    }

    /// The APIs that the upstream of the contract's model answers at.
    pub(crate) fn endpoints(&self) -> &'static [Endpoint] {
        let first = self.models.get(&self.model).and_then(|model| model.chain.first());
        let upstream = first.and_then(|link| self.config.upstreams.get(&*link.upstream));
        upstream.map_or(&[], |upstream| upstream.provider.endpoints())
    }

    /// The upstreams.
    pub(crate) fn upstreams(&self) -> Result<Vec<Upstream>, BadUpstream> {
        let make = |(name, config): (&String, &UpstreamConfig)| {
            Upstream::new(name, config, &self.secrets, &self.config.limits)
        };
        self.config.upstreams.iter().map(make).collect()
    }

    /// The grant of the run.
    pub(crate) fn grant(&self, run: &str, engine: &EngineName) -> Grant {
        Grant {
            run: Arc::from(run),
            engine: Some(Arc::from(engine.as_str())),
            models: self.models.clone(),
            reaches: Vec::new(),
            limits: self.limits,
        }
    }
}

/// The error as evidence may show it: with the names of the files in the configuration, not their paths.
fn placeless(mut text: String, config: &Config) -> String {
    let mut files: Vec<&Path> = Vec::new();
    for UpstreamConfig { provider, .. } in config.upstreams.values() {
        if let ProviderConfig::Scripted { scripts } = provider {
            files.extend(scripts.iter().map(PathBuf::as_path));
        }
        let Some(http) = provider.http() else { continue };
        files.extend(http.roots.as_deref());
        if let Some(KeySource::File(file)) = &http.key {
            files.push(file);
        }
        if let Some(UrlSource::File(file)) = &http.url {
            files.push(file);
        }
    }
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text = text.replace(&file.display().to_string(), &name);
    }
    text
}

/// The models by the names that they may be asked by. Those to fall back to have none: only the router falls back.
fn models(
    config: &Config,
    choice: &ModelChoice,
) -> Result<BTreeMap<String, Arc<AdmittedModel>>, RouterPlanError> {
    let link = |link: ModelLink<'_>| Link {
        upstream: Arc::from(link.provider),
        model: Arc::from(link.model),
        price: config.prices.get(&link.name()).copied(),
    };
    let named = |model: &'_ str| {
        let (provider, model) = choice.named(model);
        (provider.to_owned(), model.to_owned())
    };
    let mut asked: Vec<(String, String, &[String])> =
        vec![(choice.provider.clone(), choice.model.clone(), &choice.fallback)];
    asked.extend(choice.auxiliary.iter().map(|model| {
        let (provider, model) = named(model);
        (provider, model, &[][..])
    }));

    let mut models: BTreeMap<String, Arc<AdmittedModel>> = BTreeMap::new();
    for (provider, model, fallback) in &asked {
        let first = (provider.clone(), model.clone());
        let known = config.models.iter().find(|(_, known)| known.chain.first() == Some(&first));
        let mut chain = vec![link(ModelLink { provider, model })];
        chain.extend(fallback.iter().map(|model| {
            let (provider, model) = choice.named(model);
            link(ModelLink { provider, model })
        }));
        let admitted = Arc::new(AdmittedModel {
            chain,
            default_output: known.map_or(USUAL_OUTPUT, |(_, known)| known.default_output),
            ceiling: known.map_or(USUAL_CEILING, |(_, known)| known.ceiling),
        });
        // The operator's own names for it are explicit aliases.
        let aliases = known.into_iter().flat_map(|(name, known)| std::iter::once(name).chain(&known.aliases));
        for name in std::iter::once(model).chain(aliases) {
            let taken = models.insert(name.clone(), Arc::clone(&admitted));
            if taken.is_some_and(|taken| *taken != *admitted) {
                return Err(RouterPlanError::AmbiguousName(name.clone()));
            }
        }
    }
    Ok(models)
}
