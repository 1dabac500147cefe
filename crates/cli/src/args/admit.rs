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
    /// The program, at a permanent path; herma computes its digest
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
    /// Its license
    #[arg(long, value_name = "TEXT")]
    pub license: Option<Line>,
    /// Whether the license question is settled; if not, the engine is admitted to stages 1 and 2 only
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    pub license_resolved: Option<bool>,
    /// The identity that the program prints
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
    /// The provider at run time, if it is a bridge for the named one
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
    /// Its name in contracts and reports
    pub name: TargetName,
    /// The repository's directory; only the admission contains it
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Its owner
    #[arg(long, value_name = "TEXT")]
    pub owner: Option<Line>,
    /// Proof of ownership, for example a link or a CODEOWNERS entry
    #[arg(long, value_name = "TEXT")]
    pub ownership_evidence: Option<Line>,
    /// Its risk class; only `low_risk_noncritical` is admitted
    #[arg(long, value_enum)]
    pub risk_class: Option<RiskClassArg>,
    /// The reason for admitting it
    #[arg(long, value_name = "TEXT")]
    pub rationale: Option<Line>,
    /// Paths that may change, for every contract; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub allowed_path: Vec<Pattern>,
    /// Paths that may not change, for every contract; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub forbidden_path: Vec<Pattern>,
    /// Forbidden actions, for every contract; repeatable
    #[arg(long, value_name = "ACTION", value_parser = action)]
    pub forbidden_action: Vec<Action>,
    /// When it ends.
    #[command(flatten)]
    pub until: Until,
}

/// When an admission ends, and where its draft is written.
#[derive(Debug, Args)]
pub struct Until {
    /// When a review is due: `date=2027-01-31`, `runs=50`, `herma_version=0.1` or `digest_change`
    #[arg(long, value_name = "TRIGGER")]
    pub review_trigger: Option<ReviewTrigger>,
    /// When the admission expires: a day, or a time such as `2027-01-31T12:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub expires: Option<Timestamp>,
    /// Write the draft here, for example below `.herma/admissions/` (default: the installation)
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `herma admit sign`.
#[derive(Debug, Args)]
pub struct AdmitSign {
    /// An admission by kind and name, or a draft file
    #[arg(value_names = ["KIND|FILE", "NAME"], num_args = 1..=2, required = true)]
    pub what: Vec<String>,
    /// The code printed with this record (default: ask)
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// The signer.
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
        /// Its name
        name: String,
    },
    /// Check all admissions, one by kind and name, or a draft file
    Check {
        /// An admission by kind and name, or a draft file
        #[arg(value_names = ["KIND|FILE", "NAME"], num_args = 0..=2)]
        what: Vec<String>,
    },
    /// Revoke an admission; its file stays as a draft
    Revoke {
        /// `engine`, `model` or `target`
        kind: AdmissionKind,
        /// Its name
        name: String,
        /// The reason
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
    /// A file that only its owner can read
    File,
    /// The system's keychain
    Keychain,
    /// A credential service
    SecretStore,
    /// The provider needs none
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
    /// A private network
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
    /// Critical systems depend on it
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

/// A day means its first moment, in UTC.
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
