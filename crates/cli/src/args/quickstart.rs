//! Arguments of `herma quickstart`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use herma_core::admission::{Line, TargetName};
use herma_core::contract::Pattern;
use herma_core::engine::EngineName;
use herma_quickstart::{Credential, Landing, ProviderChoice};

use crate::unlock::UnlockArgs;

/// Arguments of `herma quickstart`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(group = ArgGroup::new("credential").args(["key_env", "key_file", "key_command", "key_keyring", "ask_key", "no_key"]))]
pub struct Quickstart {
    /// The engine (default: the one of `herma do`, or the one that fits your API keys)
    pub engine: Option<EngineName>,
    /// The provider of the model (default: the one that the engine was made for)
    #[arg(long, value_enum)]
    pub provider: Option<ProviderArg>,
    /// The address of a compatible server
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The model, as the provider calls it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A variable with the API key, which every run reads
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// A file with the API key, which every run reads; only you may read it
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// A shell command that prints the API key, which is kept in a file of herma's home
    #[arg(long, value_name = "COMMAND")]
    pub key_command: Option<String>,
    /// A key in the kernel's keyring
    #[arg(long, value_name = "SERVICE:USER")]
    pub key_keyring: Option<String>,
    /// Ask for the API key, which is kept in a file of herma's home (default: where no other source is found)
    #[arg(long, conflicts_with = "yes")]
    pub ask_key: bool,
    /// The server needs no key
    #[arg(long)]
    pub no_key: bool,
    /// The upstream's name in router.toml (default: the provider)
    #[arg(long, value_name = "NAME")]
    pub upstream: Option<String>,
    /// The agent's program file, at a permanent path (default: install it from its registry)
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// The exact version of the agent (default: the tested one)
    #[arg(long, value_name = "VERSION")]
    pub pin: Option<String>,
    /// The license of a program that herma does not know
    #[arg(long, value_name = "TEXT", requires = "program")]
    pub license: Option<String>,
    /// The identity that such a program prints
    #[arg(long, value_name = "TEXT", requires = "program")]
    pub identity: Option<String>,
    /// Permit a registry of npm or pip in your private network
    #[arg(long)]
    pub own_network: bool,
    /// The repository: a directory in it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// A path that may change (default: detected); repeat it for more
    #[arg(long, value_name = "GLOB")]
    pub allow: Vec<Pattern>,
    /// A verification command (default: detected); repeat it for more
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Put the repository's admission under this name on the page too, so that engines may land branches in it at stage 5
    #[arg(long, value_name = "NAME")]
    pub stage5: Option<TargetName>,
    /// With --stage5: the repository's owner
    #[arg(long, value_name = "TEXT", requires = "stage5")]
    pub owner: Option<Line>,
    /// With --stage5: proof of ownership, for example a link or a CODEOWNERS entry
    #[arg(long, value_name = "TEXT", requires = "stage5")]
    pub ownership_evidence: Option<Line>,
    /// With --stage5: the reason for admitting it
    #[arg(long, value_name = "TEXT", requires = "stage5")]
    pub rationale: Option<Line>,
    /// Write the defaults into the repository too, as `.herma/defaults.yaml`
    #[arg(long)]
    pub write: bool,
    /// Ask nothing but the code
    #[arg(long, short)]
    pub yes: bool,
    /// Install the agent and print the page of records with its code; sign nothing and call no model
    #[arg(long, conflicts_with = "code")]
    pub dry_run: bool,
    /// The code of the page (default: ask)
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// The signer.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// A provider of models.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProviderArg {
    /// Anthropic
    Anthropic,
    /// `OpenAI`
    #[value(name = "openai")]
    OpenAi,
    /// A server with one of their APIs, such as vLLM or Ollama
    Compatible,
}

impl From<ProviderArg> for ProviderChoice {
    fn from(arg: ProviderArg) -> Self {
        match arg {
            ProviderArg::Anthropic => Self::Anthropic,
            ProviderArg::OpenAi => Self::OpenAi,
            ProviderArg::Compatible => Self::Compatible,
        }
    }
}

impl Quickstart {
    /// The repository's admission.
    pub(crate) fn landing(&self) -> Option<Landing> {
        Some(Landing {
            name: self.stage5.clone()?,
            owner: self.owner.clone(),
            ownership_evidence: self.ownership_evidence.clone(),
            rationale: self.rationale.clone(),
        })
    }

    /// The source of the credential; the error is about the keyring's value.
    pub(crate) fn credential(&self) -> Result<Option<Credential>, String> {
        if let Some(name) = &self.key_env {
            return Ok(Some(Credential::Variable(name.clone())));
        }
        if let Some(file) = &self.key_file {
            return Ok(Some(Credential::File(file.clone())));
        }
        if let Some(command) = &self.key_command {
            return Ok(Some(Credential::Command(command.clone())));
        }
        match self.key_keyring.as_deref().map(|item| (item, item.split_once(':'))) {
            Some((_, Some((service, user)))) => {
                Ok(Some(Credential::Keyring { service: service.to_owned(), user: user.to_owned() }))
            }
            Some((item, None)) => Err(format!("--key-keyring {item}: expected SERVICE:USER")),
            None if self.ask_key => Ok(Some(Credential::Typed)),
            None => Ok(self.no_key.then_some(Credential::None)),
        }
    }
}
