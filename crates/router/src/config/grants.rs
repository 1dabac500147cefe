//! The grants of clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use herma_core::secret::Secret;

use super::models::ModelConfig;
use super::{Config, Secrets};
use crate::grant::{AdmittedModel, Grant, Link};

impl Config {
    /// The grant of each client, with its token. A client whose token is not among the secrets has none.
    #[must_use]
    pub fn grants(&self, secrets: &Secrets) -> Vec<(Secret<String>, Grant)> {
        let admitted: BTreeMap<&String, Arc<AdmittedModel>> =
            self.models.iter().map(|(name, model)| (name, Arc::new(self.admit(model)))).collect();
        let names = |asked: &String| {
            let model = self.models.get(asked)?;
            let admitted = admitted.get(asked)?;
            let names = std::iter::once(asked).chain(&model.aliases);
            Some(names.map(|name| (name.clone(), Arc::clone(admitted))).collect::<Vec<_>>())
        };
        let grant = |name: &String| {
            let client = self.clients.get(name)?;
            let token = secrets.token(name)?.clone();
            let grant = Grant {
                run: Arc::from(name.as_str()),
                engine: client.engine.as_deref().map(Arc::from),
                models: client.models.iter().filter_map(names).flatten().collect(),
                reaches: client.admit.clone(),
                limits: client.budget,
            };
            Some((token, grant))
        };
        self.clients.keys().filter_map(grant).collect()
    }

    /// The model that is asked by this exact name or alias.
    #[must_use]
    pub fn admitted(&self, asked: &str) -> Option<Arc<AdmittedModel>> {
        let by_alias = || self.models.values().find(|model| model.aliases.iter().any(|alias| alias == asked));
        self.models.get(asked).or_else(by_alias).map(|model| Arc::new(self.admit(model)))
    }

    fn admit(&self, model: &ModelConfig) -> AdmittedModel {
        let link = |(upstream, model): &(String, String)| Link {
            upstream: Arc::from(upstream.as_str()),
            model: Arc::from(model.as_str()),
            price: self.prices.get(&format!("{upstream}/{model}")).copied(),
        };
        AdmittedModel {
            chain: model.chain.iter().map(link).collect(),
            default_output: model.default_output,
            ceiling: model.ceiling,
        }
    }
}
