//! Arguments of `herma admit` and `herma admissions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use herma_core::Timestamp;
use herma_core::admission::{
    AdmissionKind, CredentialSource, Line, ModelRef, NetworkClass, ProviderName, ReviewTrigger, RiskClass,
    TargetName,
};
use herma_core::contract::{Action, Pattern};
use herma_core::engine::EngineName;

use crate::unlock::UnlockArgs;

/// Commands that write and sign admissions.
#[derive(Debug, Subcommand)]
pub enum Admit {
    /// Write or update the draft of an engine's admission
    Engine(AdmitEngine),
    /// Write or update the draft of a model's admission
    Model(AdmitModel),
    /// Write or update the draft of a target's admission
    Target(AdmitTarget),
    /// Show a whole admission and sign it into the installation, as an approver
    Sign(AdmitSign),
}

/// Arguments of `herma admit engine`.
#[derive(Debug, Args)]
pub struct AdmitEngine {
    /// The engine
    pub name: EngineName,
    /// The program, at a durable path; herma takes its digest
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Where it comes from: a URL, or the name of a package
    #[arg(long, value_name = "TEXT")]
    pub source: Option<Line>,
    /// The exact commit or version
    #[arg(long, value_name = "TEXT")]
    pub pin: Option<Line>,
    /// The command that gets and builds it
    #[arg(long, value_name = "COMMAND")]
    pub retrieval: Option<Line>,
    /// What its license is
    #[arg(long, value_name = "TEXT")]
    pub license: Option<Line>,
    /// Whether the license question is settled; if not, the engine is admitted to stages 1 and 2 only
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    pub license_resolved: Option<bool>,
    /// What the program says it is
    #[arg(long, value_name = "TEXT")]
    pub identity: Option<Line>,
    /// When it ends.
    #[command(flatten)]
    pub until: Until,
}

/// Arguments of `herma admit model`.
#[derive(Debug, Args)]
pub struct AdmitModel {
    /// The model: its provider and its exact name
    #[arg(value_name = "PROVIDER/MODEL")]
    pub name: ModelRef,
    /// Who serves it at run time, where that is a bridge that speaks for the provider
    #[arg(long, value_name = "NAME")]
    pub runtime_provider: Option<ProviderName>,
    /// Where the credential comes from
    #[arg(long, value_enum)]
    pub credential_source: Option<CredentialSourceArg>,
    /// Which network it is reached over
    #[arg(long, value_enum)]
    pub network: Option<NetworkArg>,
    /// When it ends.
    #[command(flatten)]
    pub until: Until,
}

/// Arguments of `herma admit target`.
#[derive(Debug, Args)]
pub struct AdmitTarget {
    /// The name that contracts and reports call it by
    pub name: TargetName,
    /// The repository's directory; it stands in the admission and nowhere else
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Whose it is
    #[arg(long, value_name = "TEXT")]
    pub owner: Option<Line>,
    /// How one knows
    #[arg(long, value_name = "TEXT")]
    pub ownership_evidence: Option<Line>,
    /// How much is at stake; only `low_risk_noncritical` is let in
    #[arg(long, value_enum)]
    pub risk_class: Option<RiskClassArg>,
    /// Why it is let in
    #[arg(long, value_name = "TEXT")]
    pub rationale: Option<Line>,
    /// What may change, whatever a contract says; can be given more than once
    #[arg(long, value_name = "PATTERN")]
    pub allowed_path: Vec<Pattern>,
    /// What may not change, whatever a contract says; can be given more than once
    #[arg(long, value_name = "PATTERN")]
    pub forbidden_path: Vec<Pattern>,
    /// What may not be done, whatever a contract says; can be given more than once
    #[arg(long, value_name = "ACTION", value_parser = action)]
    pub forbidden_action: Vec<Action>,
    /// When it ends.
    #[command(flatten)]
    pub until: Until,
}

/// When an admission ends, and where its draft is written.
#[derive(Debug, Args)]
pub struct Until {
    /// What makes a review due: `date=2027-01-31`, `runs=50`, `herma_version=0.1` or `digest_change`
    #[arg(long, value_name = "TRIGGER")]
    pub review_trigger: Option<ReviewTrigger>,
    /// When the admission ends: a day, or a time such as `2027-01-31T12:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub expires: Option<Timestamp>,
    /// Write the draft here, for example below `.herma/admissions/`; into the installation otherwise
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `herma admit sign`.
#[derive(Debug, Args)]
pub struct AdmitSign {
    /// An admission of this installation by kind and name, or a draft's file
    #[arg(value_names = ["KIND|FILE", "NAME"], num_args = 1..=2, required = true)]
    pub what: Vec<String>,
    /// The code that is printed with exactly this record; asked for otherwise
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// Who signs.
    #[command(flatten)]
    pub unlock: UnlockArgs,
}

/// Commands about admissions.
#[derive(Debug, Subcommand)]
pub enum Admissions {
    /// List the admissions of this installation
    List,
    /// Show an admission
    Show {
        /// `engine`, `model` or `target`
        kind: AdmissionKind,
        /// Which one
        name: String,
    },
    /// Say whether admissions hold, and why not: all of them, one by kind and name, or a draft's file
    Check {
        /// An admission of this installation by kind and name, or a draft's file
        #[arg(value_names = ["KIND|FILE", "NAME"], num_args = 0..=2)]
        what: Vec<String>,
    },
    /// Take an admission back; its file stays as a draft
    Revoke {
        /// `engine`, `model` or `target`
        kind: AdmissionKind,
        /// Which one
        name: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Line,
    },
}

/// Where a credential comes from.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum CredentialSourceArg {
    /// A variable in the environment of the router
    Environment,
    /// A file that only its owner reads
    File,
    /// The system's keychain
    Keychain,
    /// A service that hands out credentials
    SecretStore,
    /// The provider wants none
    None,
}

impl From<CredentialSourceArg> for CredentialSource {
    fn from(arg: CredentialSourceArg) -> Self {
        match arg {
            CredentialSourceArg::Environment => Self::Environment,
            CredentialSourceArg::File => Self::File,
            CredentialSourceArg::Keychain => Self::Keychain,
            CredentialSourceArg::SecretStore => Self::SecretStore,
            CredentialSourceArg::None => Self::None,
        }
    }
}

/// Which network a provider is reached over.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum NetworkArg {
    /// The Internet
    Public,
    /// A network of one's own
    Private,
    /// This machine
    Loopback,
}

impl From<NetworkArg> for NetworkClass {
    fn from(arg: NetworkArg) -> Self {
        match arg {
            NetworkArg::Public => Self::Public,
            NetworkArg::Private => Self::Private,
            NetworkArg::Loopback => Self::Loopback,
        }
    }
}

/// How much is at stake in a repository.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum RiskClassArg {
    /// A mistake costs little, and nothing critical depends on it
    LowRiskNoncritical,
    /// A mistake costs time or money
    Moderate,
    /// Something critical depends on it
    Critical,
}

impl From<RiskClassArg> for RiskClass {
    fn from(arg: RiskClassArg) -> Self {
        match arg {
            RiskClassArg::LowRiskNoncritical => Self::LowRiskNoncritical,
            RiskClassArg::Moderate => Self::Moderate,
            RiskClassArg::Critical => Self::Critical,
        }
    }
}

/// A day stands for its first moment, in UTC.
fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .or_else(|_| format!("{text}T00:00:00Z").parse())
        .map_err(|_| "expected a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z".to_owned())
}

fn action(text: &str) -> Result<Action, String> {
    Action::ALL.into_iter().find(|action| action.as_str() == text).ok_or_else(|| {
        let known: Vec<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
        format!("expected one of: {}", known.join(", "))
    })
}
