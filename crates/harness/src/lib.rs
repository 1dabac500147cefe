//! A run, from contract to verdict. `run.rs` is the place to start reading.

mod admissions;
mod approvals;
mod approvers;
mod ask;
mod attempts;
mod bundle_check;
mod checks;
mod children;
mod clock;
mod close;
mod collect;
mod compare;
mod confinement_check;
mod decide;
mod destinations;
mod dialogue;
mod egress;
mod error;
mod facts;
pub mod failure_matrix;
mod follow;
mod gates;
mod governance;
mod install;
mod installation;
mod ladder;
mod land;
mod models;
mod operator_settings;
mod order;
mod outcome;
mod permission;
mod prepare;
mod probe;
mod program;
mod progress;
mod pump;
mod recover;
mod resume;
mod run;
mod run_service;
mod session;
mod stopping;
mod supervise;
mod target;
mod trust;
mod verification;
mod watch;

use herma_evidence::file_reading;

pub use admissions::{
    AdmissionError, AdmissionFile, Admissions, Found, Listed, RunsSince, SYSTEM_TEMP_DIRS, Situation, checked,
};
pub use approvals::{BadRequest, Packet, not_too_long};
pub use approvers::{Approver, ApproverError, Approvers, KnownApprover};
pub use ask::{AskError, Asker, ask, rule};
pub use bundle_check::{verify_bundle, verify_run};
pub use children::{ChildAnswer, ChildAsk, HandedFile, SOCKET_VARIABLE, WORKSPACE_VARIABLE};
pub use clock::SystemClock;
pub use compare::{
    CompareError, ComparisonError, ComparisonOrder, Comparisons, ContractOnLanes, Turns, compare,
    comparison_markdown,
};
pub use destinations::{Choice, ChoiceError};
pub use egress::{
    Allowed, EgressError, EgressFiles, EgressOfRun, GrantState, InstallationList, KnownGrant, Proposal,
    SignedBy, check_contract as check_egress,
};
pub use error::OrderError;
pub use follow::{FileTail, FollowedEntry, RunFollower};
pub use governance::{POLICY_DIR, PolicyError, RunGovernance, read_policies, read_policy, read_policy_cases};
pub use install::{InstallError, InstallOrder, InstalledTree, install};
pub use installation::{Installation, OpenError, Settings};
pub use ladder::{
    Climb, ClimbState, ClimbStep, ClimbWatch, People, Proofs, ProveError, Rung, RungState, Standing,
    case_names, climb_status, ladder, prove,
};
pub use models::{ROUTER_FILE, SecretSource, router_config};
pub use operator_settings::{OperatorSettings, SettingsError};
pub use order::Order;
pub use outcome::{OutcomeError, OutcomeNow, TakenBack, accept, outcome_of, reject};
pub use probe::probe_alone;
pub use progress::{Progress, Unwatched};
pub use recover::{Recovered, recover, settle_used};
pub use resume::{ResumeError, Resumed, resume};
pub use run::{Finished, run};
pub use run_service::{RunHandle, RunService};
pub use trust::{TrustError, TrustLog, adopt};
