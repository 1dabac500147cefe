//! The command line. `docs/cli.md` is generated from it.

mod admit;
mod apply;
mod approvals;
mod approver;
mod compare;
mod destination;
mod do_task;
mod egress;
mod engines;
mod env;
mod health;
mod ladder;
mod outcome;
mod policy;
mod quickstart;
mod retention;
mod router;
mod runs;
mod store;
mod trust;
mod usage;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use herma_core::admission::ModelRef;
use herma_core::contract::{ContractId, FixtureName, RepoRef};
use herma_core::egress::EgressMode;
use herma_core::engine::{DestinationKind, EngineName};

pub use self::admit::{Admissions, Admit, AdmitEngine, AdmitModel, AdmitSign, AdmitTarget, Until};
pub use self::apply::Apply;
pub use self::approvals::{Approvals, Deny, Grant, ListApprovals, RequestApproval, ShowApproval};
pub use self::approver::{Approver, ApproverInit};
pub use self::compare::Compare;
pub use self::destination::{Destination, OfRepository, Probe, SetDestination};
pub use self::do_task::Do;
pub use self::egress::{Egress, EgressAdopt, EgressGrant, EgressTest};
pub use self::engines::{Engines, EnginesArgs, InstallEngine};
pub use self::env::{Env, EnvBuild, EnvShell};
pub use self::health::{Health, Matrix, Summary, SummaryCheck, SummaryCommand};
pub use self::ladder::{Ladder, Prove};
pub use self::outcome::{Accept, Reject};
pub use self::policy::{Policy, PolicyCheck, PolicyExplain, PolicyTest};
pub use self::quickstart::{ProviderArg, Quickstart};
pub use self::retention::{Discard, Export, Gc};
pub use self::router::{ApiArg, Router, RouterCommand};
pub use self::runs::{Diff, Runs, Selection, Show, StatusArg};
pub use self::store::{Store, StoreMigrate};
pub use self::trust::Trust;
pub use self::usage::{Usage, UsageByArg};

/// Run coding agents on repositories under a contract, and prove what they did.
#[derive(Debug, Parser)]
#[command(name = "herma", version, max_term_width = 110)]
pub struct Cli {
    /// Print JSON; `herma schema` prints its schemas
    #[arg(long, global = true)]
    pub json: bool,
    /// Log to stderr: `-v` steps, model calls and egress decisions, `-vv` also events and attempts
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// The format of log records
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Never page long output
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The format of log records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a built-in contract and verify its evidence
    Demo(Demo),
    /// Set up an agent, a model and this repository, step by step
    Quickstart(Box<Quickstart>),
    /// Write a first contract for a repository
    Init(Init),
    /// Run a contract
    Run(Run),
    /// Have an agent change a repository: a contract from flags and defaults
    Do(Do),
    /// Continue an earlier run with the agent's session
    Resume(Resume),
    /// Delete the kept workspace and session of a run; its evidence stays
    Discard(Discard),
    /// Remove old workspaces, sessions, environments and bundles that nothing names
    Gc(Gc),
    /// Write the bundles of runs into one archive
    Export(Export),
    /// List your runs, newest first
    Runs(Runs),
    /// Show a run on one screen
    Show(Show),
    /// Show the patch of a run
    Diff(Diff),
    /// Show the output of the engine and of the verification commands
    Logs(Logs),
    /// Follow runs of any process, event by event, until they are closed
    Watch(Watch),
    /// Verify a bundle offline
    Verify(Verify),
    /// Apply the verified patch of a run to your own work tree, or take it back
    Apply(Apply),
    /// Accept the branch that a run landed
    Accept(Accept),
    /// Reject the branch that a run landed, and delete it
    Reject(Reject),
    /// Run the same contracts on several engines and compare the evidence
    Compare(Compare),
    /// Check, write and digest contracts
    #[command(subcommand)]
    Contract(Contract),
    /// List, install, enable and disable engines
    Engines(EnginesArgs),
    /// List destinations, what each is missing, and how it confines
    Destinations(OfRepository),
    /// Choose the destination for runs on a repository
    #[command(subcommand)]
    Destination(Destination),
    /// Test the confinement of a destination from inside
    Probe(Probe),
    /// Request, list, grant and deny approvals
    #[command(subcommand)]
    Approvals(Approvals),
    /// Write and sign admissions of engines, models and targets
    #[command(subcommand)]
    Admit(Admit),
    /// List, check and revoke admissions
    #[command(subcommand)]
    Admissions(Admissions),
    /// Prove a stage of an engine with a passing run and its failure cases
    Prove(Prove),
    /// Show the proven stages of every engine, and what the next one needs
    Ladder(Ladder),
    /// Print the control summary: what is proven, blocked, approved and next
    Summary(Summary),
    /// Check the health of this installation from its evidence
    Health(Health),
    /// Bring every row of the failure matrix about on `fake`, in throw-away homes
    Matrix(Matrix),
    /// Create, list and revoke approvers
    #[command(subcommand)]
    Approver(Approver),
    /// Verify the trust chain, or start it for an older home
    #[command(subcommand)]
    Trust(Trust),
    /// Check, rebuild and move the store
    #[command(subcommand)]
    Store(Store),
    /// Build, list and remove environments: the tools and packages that a project's tests need
    #[command(subcommand)]
    Env(Env),
    /// Show, test and change the hosts that runs may reach
    #[command(subcommand)]
    Egress(Egress),
    /// Check, test and explain policies for tool calls
    #[command(subcommand)]
    Policy(Policy),
    /// Serve the router, which admits, limits, forwards and records model calls
    Router(Router),
    /// List configured and admitted models with aliases and prices
    Models,
    /// Add up the model usage of runs
    Usage(Usage),
    /// Print the JSON schemas of herma's output and files
    Schema(Schema),
    /// Check this machine and suggest fixes
    Doctor(Doctor),
    /// Print shell completions
    Completions(Completions),
}

/// Arguments of `herma demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// The built-in fixture to work on
    #[arg(long, value_name = "NAME", default_value = "string-slugify")]
    pub fixture: FixtureName,
    /// The script of the fixture that `fake` plays
    #[arg(long, value_name = "NAME", default_value = "fix")]
    pub script: String,
    /// The destination (default: `sandbox` if bubblewrap is installed, else `host`)
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
}

/// Arguments of `herma init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The repository
    #[arg(default_value = ".")]
    pub directory: PathBuf,
    /// The contract's name
    #[arg(long, default_value = "first")]
    pub id: ContractId,
    /// The task in one line
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The task in full, as you would give it to a colleague who has never seen the code
    #[arg(long, value_name = "TEXT")]
    pub brief: Option<String>,
    /// The model that the engine may use
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<ModelRef>,
}

/// Arguments of `herma run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The contract file, or `fixture:NAME` for a built-in contract
    pub contract: String,
    /// The engine
    #[arg(long, value_name = "NAME", default_value = EngineName::DEFAULT)]
    pub engine: EngineName,
    /// The destination, if the contract names none; must not contradict the contract
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// The script that `fake` plays: a name from the fixture, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub script: Option<String>,
    /// Keep the workspace after the run and print its path
    #[arg(long)]
    pub keep_workspace: bool,
    /// How to treat hosts that are not on the allowlist; `learn` is for fixtures
    #[arg(long, value_enum, default_value = "strict", value_name = "MODE")]
    pub egress: EgressArg,
    /// Evaluate the gates, build the environment and run the verification commands on the base; start no engine and call no model
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `herma resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    pub run: String,
    /// A message for the agent in addition to the verdict; recorded in the evidence
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Start from the workspace that was kept when the run was interrupted
    #[arg(long)]
    pub from_workspace: bool,
    /// Leave the kept workspace aside: start from the base, with the patch of the run if it left one
    #[arg(long, conflicts_with = "from_workspace")]
    pub from_base: bool,
    /// The script that `fake` plays: a file
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Keep the workspace after the run and print its path
    #[arg(long)]
    pub keep_workspace: bool,
}

/// How to treat hosts that are not on the allowlist.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EgressArg {
    /// Deny it
    Strict,
    /// Permit it, and record it as a proposal for the allowlist
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

/// The destination.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DestinationArg {
    /// On this machine, unconfined: for `fake` only
    Host,
    /// In bubblewrap's namespaces
    Sandbox,
    /// In containers of an image named by digest
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

/// Arguments of `herma logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// The run: its id, a prefix of it, its last eight digits, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Print only this log, as it was written
    #[arg(long, value_enum)]
    pub only: Option<LogArg>,
    /// Print the agent's own output and the log of verification in place of the transcript
    #[arg(long, conflicts_with = "only")]
    pub raw: bool,
    /// Show results and edits whole
    #[arg(long, conflicts_with_all = ["raw", "only"])]
    pub full: bool,
    /// Continue with new output until the run is closed
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
    /// A trusted public key (PEM) for bundle or outcome (default: keys of this installation and its approvers)
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// The target repository, to check the patch against its base
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
}

/// Commands about contracts.
#[derive(Debug, Subcommand)]
pub enum Contract {
    /// Check a contract
    Check {
        /// The contract file
        file: PathBuf,
    },
    /// Write a contract to start from
    New {
        /// The contract's id
        id: ContractId,
        /// The file to write (default: `ID.md`); an existing file is never overwritten
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
        /// The contract file
        file: PathBuf,
    },
}

/// Arguments of `herma schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema (default: list all names)
    pub name: Option<String>,
}

/// Arguments of `herma doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Check what a run with this engine needs
    pub engine: Option<EngineName>,
}

/// Arguments of `herma completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}
