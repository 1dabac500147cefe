//! The admission of a model: one exact model of one provider.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complete::Incomplete;
use super::field::Field;
use super::name::{ModelName, ModelRef, ProviderName};
use super::review::{Review, ReviewTrigger};

/// `kind: model`, the first key of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// A model.
    Model,
}

/// Where the credential for a provider comes from. The class only: neither the credential nor its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialSource {
    /// A variable in the environment of the router.
    Environment,
    /// A file that only its owner reads.
    File,
    /// The system's keychain.
    Keychain,
    /// A service that hands out credentials.
    SecretStore,
    /// The provider wants none.
    None,
}

/// Which network a provider is reached over. The class only: never the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkClass {
    /// The Internet.
    Public,
    /// A network of one's own.
    Private,
    /// This machine.
    Loopback,
}

/// The file of a model admission, as far as it is filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelDraft {
    /// `model`.
    pub kind: ModelKind,
    /// The provider that serves it.
    pub provider: ProviderName,
    /// Its exact name.
    pub model: ModelName,
    /// The provider that serves it at run time, if that is a bridge to the provider.
    #[serde(default)]
    pub runtime_provider: Option<ProviderName>,
    /// Where the credential comes from.
    #[serde(default)]
    pub credential_source: Option<CredentialSource>,
    /// Which network it is reached over.
    #[serde(default)]
    pub network: Option<NetworkClass>,
    /// The conditions that make a review due.
    #[serde(default)]
    pub review_trigger: Option<ReviewTrigger>,
    /// When the admission ends.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// The admission of a model with everything that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAdmission {
    /// The model.
    pub model: ModelRef,
    /// The provider that serves it at run time, if that is a bridge to the provider.
    pub runtime_provider: Option<ProviderName>,
    /// Where the credential comes from.
    pub credential_source: CredentialSource,
    /// Which network it is reached over.
    pub network: NetworkClass,
    /// When it has to be looked at again.
    pub review: Review,
}

impl CredentialSource {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::File => "file",
            Self::Keychain => "keychain",
            Self::SecretStore => "secret_store",
            Self::None => "none",
        }
    }
}

impl NetworkClass {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
        }
    }
}

impl ModelDraft {
    /// An empty draft.
    #[must_use]
    pub fn new(model: ModelRef) -> Self {
        Self {
            kind: ModelKind::Model,
            provider: model.provider,
            model: model.model,
            runtime_provider: None,
            credential_source: None,
            network: None,
            review_trigger: None,
            expires_at: None,
        }
    }

    /// Which model it is about.
    #[must_use]
    pub fn model_ref(&self) -> ModelRef {
        ModelRef { provider: self.provider.clone(), model: self.model.clone() }
    }

    /// The record, if everything is there.
    pub fn complete(&self) -> Result<ModelAdmission, Incomplete> {
        let mut lacks = Incomplete::default();
        let credential_source = lacks.need("credential_source", self.credential_source.as_ref());
        let network = lacks.need("network", self.network.as_ref());
        let review = Review::new(self.review_trigger.clone(), self.expires_at);
        let review = lacks.need("review_trigger or expires_at", review.as_ref());
        lacks.refuse_digest_change(self.review_trigger.as_ref());
        match (credential_source, network, review) {
            (Some(credential_source), Some(network), Some(review)) if lacks.is_empty() => {
                Ok(ModelAdmission {
                    model: self.model_ref(),
                    runtime_provider: self.runtime_provider.clone(),
                    credential_source,
                    network,
                    review,
                })
            }
            _ => Err(lacks),
        }
    }

    /// The fields as they are written.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        vec![
            Field::word("kind", Some("model")),
            Field::text("provider", Some(&self.provider)),
            Field::text("model", Some(&self.model)),
            Field::text("runtime_provider", self.runtime_provider.as_ref()),
            Field::word("credential_source", self.credential_source.map(CredentialSource::as_str)),
            Field::word("network", self.network.map(NetworkClass::as_str)),
            Field::word("review_trigger", self.review_trigger.as_ref()),
            Field::word("expires_at", self.expires_at),
        ]
    }
}
