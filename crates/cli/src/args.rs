//! The command line. `docs/cli.md` is generated from it.

mod admit;
mod approvals;
mod approver;
mod compare;
mod destination;
mod egress;
mod engines;
mod ladder;
mod outcome;
mod policy;
mod router;
mod trust;
mod usage;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use herma_core::Status;
use herma_core::contract::{ContractId, FixtureName, RepoRef};
use herma_core::egress::EgressMode;
use herma_core::engine::{DestinationKind, EngineName};

pub use self::admit::{Admissions, Admit, AdmitEngine, AdmitModel, AdmitSign, AdmitTarget, Until};
pub use self::approvals::{Approvals, Deny, Grant, ListApprovals, RequestApproval, ShowApproval};
pub use self::approver::{Approver, ApproverInit};
pub use self::compare::Compare;
pub use self::destination::{Destination, OfRepository, Probe, SetDestination};
pub use self::egress::{Egress, EgressAdopt, EgressGrant, EgressTest};
pub use self::engines::{Engines, EnginesArgs, InstallEngine};
pub use self::ladder::{Ladder, Prove};
pub use self::outcome::{Accept, Reject};
pub use self::policy::{Policy, PolicyCheck, PolicyExplain, PolicyTest};
pub use self::router::{ApiArg, Router, RouterCommand};
pub use self::trust::Trust;
pub use self::usage::{Usage, UsageByArg};

/// Coding agents change repositories under contract, and herma proves what they did.
#[derive(Debug, Parser)]
#[command(name = "herma", version, max_term_width = 110)]
pub struct Cli {
    /// Print JSON; `herma schema` prints its schemas
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take a built-in contract through a whole run and show why the result can be trusted
    Demo(Demo),
    /// Start using herma in a repository: write a first contract
    Init(Init),
    /// Run a contract
    Run(Run),
    /// Go on with an earlier run: a new run of its contract, whose agent keeps its session
    Resume(Resume),
    /// List runs, newest first
    Runs(Runs),
    /// Show a run's report
    Show(Show),
    /// Show what a run changed
    Diff(OneRun),
    /// Show what the engine and the verification commands printed
    Logs(Logs),
    /// Follow runs of any process, event by event, until they are closed
    Watch(Watch),
    /// Prove or refute a bundle, offline
    Verify(Verify),
    /// Take the result that a run landed in its target
    Accept(Accept),
    /// Do not take the result that a run landed: its branch is deleted
    Reject(Reject),
    /// Run the same contracts on several engines, and compare what the evidence shows
    Compare(Compare),
    /// Check, write and digest contracts
    #[command(subcommand)]
    Contract(Contract),
    /// List engines, install their agents, and switch them on and off
    Engines(EnginesArgs),
    /// List destinations: which are ready, what is missing, and which walls they have
    Destinations(OfRepository),
    /// Choose where runs on a repository take place
    #[command(subcommand)]
    Destination(Destination),
    /// Try from inside a destination what must not be possible there
    Probe(Probe),
    /// Ask for, list, grant and deny approvals
    #[command(subcommand)]
    Approvals(Approvals),
    /// Write and sign records that let an engine, a model or a target in
    #[command(subcommand)]
    Admit(Admit),
    /// List, check and revoke what was let in
    #[command(subcommand)]
    Admissions(Admissions),
    /// Prove a stage of an engine: its pass case, its failure classes, and the same contract on `fake`
    Prove(Prove),
    /// Show what every engine has proven, and what is missing for its next stage
    Ladder(Ladder),
    /// Say who may let things in
    #[command(subcommand)]
    Approver(Approver),
    /// Verify the chain of records that give and take away trust
    #[command(subcommand)]
    Trust(Trust),
    /// Show, test and change what runs may reach besides their model
    #[command(subcommand)]
    Egress(Egress),
    /// Check, test and explain the policies by which tool calls are judged
    #[command(subcommand)]
    Policy(Policy),
    /// Serve the one way to a model: admits, bounds, forwards and records every call
    Router(Router),
    /// List the models that are configured or admitted: by which names they are asked, and what they cost
    Models,
    /// Add up what runs used of models
    Usage(Usage),
    /// Print the JSON schemas of everything that herma writes
    Schema(Schema),
    /// Say what works on this machine, and how to mend what does not
    Doctor(Doctor),
    /// Print completions for a shell
    Completions(Completions),
}

/// Arguments of `herma demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// The built-in fixture to work on
    #[arg(long, value_name = "NAME", default_value = "string-slugify")]
    pub fixture: FixtureName,
    /// What `fake` does, by the name of one of the fixture's scripts
    #[arg(long, value_name = "NAME", default_value = "fix")]
    pub script: String,
    /// Where to run: `sandbox` where bubblewrap is there, else `host`, if nothing is said
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
}

/// Arguments of `herma init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The repository
    #[arg(default_value = ".")]
    pub directory: PathBuf,
}

/// Arguments of `herma run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The contract's file, or `fixture:NAME` for a built-in one
    pub contract: String,
    /// The engine
    #[arg(long, value_name = "NAME", default_value = EngineName::DEFAULT)]
    pub engine: EngineName,
    /// Where to run, if the contract does not say it; one that it contradicts is refused
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// What `fake` does: one of the fixture's scripts by name, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub script: Option<String>,
    /// Keep the workspace after the run, and say where it lies
    #[arg(long)]
    pub keep_workspace: bool,
    /// What a host that is not listed means; `learn` is for fixtures
    #[arg(long, value_enum, default_value = "strict", value_name = "MODE")]
    pub egress: EgressArg,
}

/// Arguments of `herma resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The run: its name, the start of it, its last eight digits, or `last`
    pub run: String,
    /// What to tell the agent, beside how its work was judged; it goes into the evidence
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Keep the workspace after the run, and say where it lies
    #[arg(long)]
    pub keep_workspace: bool,
}

/// What a host that is not listed means.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EgressArg {
    /// It is denied
    Strict,
    /// It passes, and is written down as a proposal that a person can adopt
    Learn,
}

impl From<EgressArg> for EgressMode {
    fn from(arg: EgressArg) -> Self {
        match arg {
            EgressArg::Strict => Self::Strict,
            EgressArg::Learn => Self::Learn,
        }
    }
}

/// Where to run.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DestinationArg {
    /// On this machine, without walls: for `fake` only
    Host,
    /// In bubblewrap's namespaces
    Sandbox,
    /// In containers of an image that is named by digest
    Docker,
}

impl From<DestinationArg> for DestinationKind {
    fn from(arg: DestinationArg) -> Self {
        match arg {
            DestinationArg::Host => Self::Host,
            DestinationArg::Sandbox => Self::Sandbox,
            DestinationArg::Docker => Self::Docker,
        }
    }
}

/// Arguments of `herma runs`.
#[derive(Debug, Args)]
pub struct Runs {
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Only those before this run: its name, the start of it, its last eight digits, or `last`
    #[arg(long, value_name = "RUN")]
    pub before: Option<String>,
    /// Only those with this verdict
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
}

/// A verdict.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StatusArg {
    /// Every gate held and every check passed
    Pass,
    /// Something was found wrong
    Fail,
    /// Something could not be started or checked
    Blocked,
}

impl From<StatusArg> for Status {
    fn from(arg: StatusArg) -> Self {
        match arg {
            StatusArg::Pass => Self::Pass,
            StatusArg::Fail => Self::Fail,
            StatusArg::Blocked => Self::Blocked,
        }
    }
}

/// Arguments of `herma show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The run: its name, the start of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Only the tree of runs that it stands in: where it came from, and the children that it asked for
    #[arg(long)]
    pub tree: bool,
}

/// A command about one run.
#[derive(Debug, Args)]
pub struct OneRun {
    /// The run: its name, the start of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
}

/// Arguments of `herma logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// The run: its name, the start of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Only this log
    #[arg(long, value_enum)]
    pub only: Option<LogArg>,
    /// Go on with what is written while the run goes on, until it is closed
    #[arg(long, short)]
    pub follow: bool,
}

/// Arguments of `herma watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The runs: each by its name, the start of it, its last eight digits, or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
}

/// One of a run's logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogArg {
    /// The engine's standard output
    Stdout,
    /// The engine's standard error
    Stderr,
    /// The verification commands
    Test,
    /// The events
    Events,
}

/// Arguments of `herma verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle's directory, or a run of this installation
    pub bundle: String,
    /// A public key that may have signed it or its outcome (PEM); those of this installation and its approvers otherwise
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// The repository that the contract is about, to apply the patch to its base
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
}

/// Commands about contracts.
#[derive(Debug, Subcommand)]
pub enum Contract {
    /// Say whether a contract can be read, and what it comes to
    Check {
        /// The contract's file
        file: PathBuf,
    },
    /// Write a contract to start from
    New {
        /// The contract's name
        id: ContractId,
        /// Where to write it; `ID.md` otherwise. A file that is there is never overwritten
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// A repository, as a path relative to the contract
        #[arg(long, value_name = "PATH", conflicts_with = "fixture")]
        repo: Option<RepoRef>,
        /// A built-in fixture
        #[arg(long, value_name = "NAME")]
        fixture: Option<FixtureName>,
    },
    /// Print a contract's digest
    Digest {
        /// The contract's file
        file: PathBuf,
    },
}

/// Arguments of `herma schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Which one; all names otherwise
    pub name: Option<String>,
}

/// Arguments of `herma doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Only this engine: what is missing for a run with it
    pub engine: Option<EngineName>,
}

/// Arguments of `herma completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}
