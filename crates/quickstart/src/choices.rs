//! Choices that a person made by flags. Everything else is found or asked.

use std::path::PathBuf;

use herma_core::admission::{Line, TargetName};
use herma_core::approver::ApproverName;
use herma_core::contract::Pattern;
use herma_core::engine::EngineName;

/// The engine if nothing else is known.
pub const DEFAULT_ENGINE: &str = "claude";

/// The choices of a person.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The engine; one that fits what is found otherwise.
    pub engine: Option<EngineName>,
    /// The agent's program or tree; it is installed from its registry otherwise.
    pub program: Option<PathBuf>,
    /// The exact version of the agent.
    pub pin: Option<String>,
    /// The license of a program that is no known package.
    pub license: Option<String>,
    /// The identity that such a program prints.
    pub identity: Option<String>,
    /// Whether the package registry may be in a private network.
    pub own_network: bool,
    /// The approver who signs.
    pub approver: Option<ApproverName>,
    /// The user, after whom a first approver is named.
    pub user: String,
    /// The provider of the model.
    pub provider: Option<ProviderChoice>,
    /// The upstream's name in the router's configuration; that of the provider otherwise.
    pub upstream: Option<String>,
    /// The address of a compatible server.
    pub url: Option<String>,
    /// The model, as the provider calls it.
    pub model: Option<String>,
    /// The source of the credential.
    pub credential: Option<Credential>,
    /// The directory in which the command was started, or the named repository.
    pub directory: PathBuf,
    /// Whether the defaults are written into the repository too.
    pub write: bool,
    /// Verification commands; those that are detected otherwise.
    pub verify: Vec<String>,
    /// Paths that may change; those that are detected otherwise.
    pub allow: Vec<Pattern>,
    /// The repository's admission for stage 5, if it is to be on the page.
    pub landing: Option<Landing>,
    /// Whether only the page of records is made: nothing is signed, and no model is called.
    pub dry_run: bool,
}

/// Statements of a person about a repository in which engines may land branches.
#[derive(Clone, Debug)]
pub struct Landing {
    /// Its name in contracts.
    pub name: TargetName,
    /// Its owner.
    pub owner: Option<Line>,
    /// The proof of that.
    pub ownership_evidence: Option<Line>,
    /// Why it is admitted.
    pub rationale: Option<Line>,
}

/// A provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderChoice {
    /// Anthropic.
    Anthropic,
    /// `OpenAI`.
    OpenAi,
    /// A server with the same API.
    Compatible,
}

impl ProviderChoice {
    /// Its name in the router's configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Compatible => "compatible",
        }
    }

    /// The variable in which its key usually is.
    pub(crate) fn variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Compatible => None,
        }
    }

    /// The families of models that a set-up proposes first: good at code, and neither the cheapest nor the most expensive.
    pub(crate) fn families(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["claude-sonnet-", "claude-opus-"],
            Self::OpenAi => &["gpt-5"],
            Self::Compatible => &[],
        }
    }
}

/// Where a credential comes from. It is never written into a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A variable of the environment, which every later run reads.
    Variable(String),
    /// A file of the person's, which every later run reads.
    File(PathBuf),
    /// A shell command whose output is kept in a file of herma's home.
    Command(String),
    /// The kernel's keyring, as `SERVICE:USER`.
    Keyring {
        /// The service.
        service: String,
        /// The user.
        user: String,
    },
    /// Typed by a person, kept in a file of herma's home.
    Typed,
    /// None: the server asks for none.
    None,
}
