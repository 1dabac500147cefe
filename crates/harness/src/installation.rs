//! Everything that runs share on this machine: home, key, store, git, engines, clock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::budget::Leases;
use herma_core::store::{Store as _, StoreError};
use herma_core::{CancellationToken, Clock, RunId};
use herma_engines::Registry;
use herma_evidence::{ExpectedRun, InstallationKey, KeyError, Trust};
use herma_git::{Git, GitError};
use herma_home::{Home, HomeError, HomePlace};
use herma_policy::Policies;
use herma_store::SqliteStore;

use crate::admissions::Admissions;
use crate::approvers::Approvers;
use crate::egress::EgressFiles;
use crate::governance::{PolicyError, policies};
use crate::models::SecretSource;
use crate::operator_settings::{OperatorSettings, SettingsError};
use crate::trust::TrustLog;

/// What an installation is opened with; all of it comes in as values.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where herma's home is; none where nothing says where it could be.
    pub home: Option<HomePlace>,
    /// herma's own binary, by its own path.
    pub herma: PathBuf,
    /// The home of the user who runs herma.
    pub user_home: PathBuf,
    /// Where git, bubblewrap and toolchains are looked up.
    pub search_path: OsString,
    /// Where the secrets lie that the router's configuration names.
    pub secrets: SecretSource,
    /// Where Docker listens, as `DOCKER_HOST` says it; the usual place if none is named.
    pub docker_host: Option<String>,
}

/// Everything that runs share on this machine.
pub struct Installation {
    /// Where everything lies.
    pub home: Home,
    /// The index of runs.
    pub store: SqliteStore,
    /// What signs the evidence.
    pub key: Arc<InstallationKey>,
    /// What the operator decided for all runs.
    pub operator: OperatorSettings,
    /// By this every run under way hears that herma was told to end.
    pub cancellation: CancellationToken,
    pub(crate) trust_log: TrustLog,
    pub(crate) git: Git,
    pub(crate) engines: Registry,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
}

/// The installation could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The home cannot be made or written, or is not the user's own.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key cannot be read or made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// git is missing.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The operator's settings cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl Installation {
    /// Opens the installation, making home, key and store on first use.
    pub fn open(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let home = Home::open(settings.home.as_ref().ok_or(HomeError::Nowhere)?)?;
        let key = Arc::new(InstallationKey::load_or_create(&home.keys())?);
        let trust_log = TrustLog::open(home.root(), key.public(), Some(Arc::clone(&key)));
        let programs = Admissions::open(home.admissions(), trust_log.clone()).programs();
        let operator = OperatorSettings::read(&home.settings())?;
        let own_digest = Some(home.own_digest());
        Ok(Self {
            store: SqliteStore::open(&home.store())?,
            key,
            trust_log,
            git: Git::find(&settings.search_path)?,
            engines: Registry::new(settings.herma.clone(), own_digest, programs, &operator.acp),
            operator,
            cancellation: CancellationToken::default(),
            home,
            clock,
            settings,
        })
    }

    /// The people who may let things in.
    #[must_use]
    pub fn approvers(&self) -> Approvers {
        Approvers::open(self.trust_log.clone())
    }

    /// The records by which people let things in.
    #[must_use]
    pub fn admissions(&self) -> Admissions {
        Admissions::open(self.home.admissions(), self.trust_log.clone())
    }

    /// What every run may reach, and what runs have learned.
    #[must_use]
    pub fn egress(&self) -> EgressFiles {
        EgressFiles::open(self.home.egress())
    }

    /// What tool calls are judged by: herma's policies and the operator's.
    pub fn policies(&self) -> Result<Policies, PolicyError> {
        policies(&self.home)
    }

    /// Whose signatures count here: this installation's on evidence, its approvers' on outcomes.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust { keys: vec![self.key.public()], approvers: self.approvers().trusted().unwrap_or_default() }
    }

    /// The run whose bundle has to be in the directory of `run_id`: its contract is the one that the store has for it.
    #[must_use]
    pub fn expected_run(&self, run_id: RunId) -> ExpectedRun {
        let found = self.store.find(&run_id.to_string()).unwrap_or_default();
        let contract_digest = found.iter().find(|run| run.run_id == run_id).map(|run| run.contract_digest);
        ExpectedRun { run_id, contract_digest }
    }

    /// The chain of everything that gave or took away trust here.
    #[must_use]
    pub fn trust_log(&self) -> &TrustLog {
        &self.trust_log
    }

    /// The engines of this version.
    #[must_use]
    pub fn engines(&self) -> &Registry {
        &self.engines
    }

    /// git, hardened.
    #[must_use]
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Where budgets that several runs share are leased from.
    pub(crate) fn leases(&self) -> Result<Arc<dyn Leases>, StoreError> {
        Ok(Arc::new(self.store.leases(&self.home.store())?))
    }

    pub(crate) fn search_path(&self) -> &std::ffi::OsStr {
        &self.settings.search_path
    }

    /// Where the probes plant what nobody inside may read. A user without a home has nothing there that could be read.
    pub(crate) fn user_home(&self) -> &Path {
        let user_home = self.settings.user_home.as_path();
        if user_home.is_dir() { user_home } else { self.home.root() }
    }

    /// herma's own binary.
    #[must_use]
    pub fn herma(&self) -> &Path {
        &self.settings.herma
    }
}
