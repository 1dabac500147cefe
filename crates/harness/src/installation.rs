//! Everything that runs share on this machine: home, key, store, git, engines, clock.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::store::StoreError;
use herma_core::{CancellationToken, Clock, RunId, Timestamp, VERSION};
use herma_engines::Registry;
use herma_evidence::{ExpectedRun, InstallationKey, KeyError, Trust};
use herma_git::{Git, GitError};
use herma_home::{Home, HomeError, HomePlace};
use herma_policy::Policies;
use herma_store::{BlockingStore, EventWriter, StoreLocation};
use herma_trust::{
    AdmissionContext, Admissions, Approvers, EgressFiles, Outcomes, Proofs, RunEvidence, SYSTEM_TEMP_DIRS,
    TrustLog, count_runs,
};

use crate::operator_settings::{OperatorSettings, SettingsError};
use crate::policy_files::{PolicyError, policies};
use crate::secret_source::SecretSource;
use crate::store_place::{StorePlace, StorePlaceError, StoreVariables, store_location, target_location};

/// The settings of an installation; all of them are passed in as values.
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
    /// Variables of package managers and version managers, such as `GOPROXY` and `JAVA_HOME`.
    pub client_variables: BTreeMap<String, String>,
    /// The store that the environment names.
    pub store: StoreVariables,
}

impl Settings {
    /// The store: that of the environment, else that of the operator's settings, else the file in the home.
    pub fn store_location(
        &self,
        home: &Home,
        operator: &OperatorSettings,
    ) -> Result<StoreLocation, StorePlaceError> {
        store_location(&StorePlace {
            home_file: home.store(),
            variables: &self.store,
            settings: &operator.store,
            secrets: &self.secrets,
            search_path: &self.search_path,
            user_home: &self.user_home,
        })
    }

    /// Another store, with its password in a file. Without a file, that of the environment is taken where the environment
    /// names no store.
    pub fn other_store_location(
        &self,
        url: &str,
        password_file: Option<&Path>,
    ) -> Result<StoreLocation, StorePlaceError> {
        target_location(url, password_file, &self.store)
    }
}

/// Everything that runs share on this machine.
pub struct Installation {
    /// The home.
    pub home: Home,
    /// The store of runs, approvals and budgets.
    pub store: BlockingStore,
    /// The key that signs the evidence.
    pub key: Arc<InstallationKey>,
    /// The operator's settings for all runs.
    pub operator: OperatorSettings,
    /// Cancels every run of the process.
    pub cancellation: CancellationToken,
    /// Copies events of runs to the store.
    pub(crate) event_writer: Arc<EventWriter>,
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
    /// The store cannot be located, or its password cannot be had.
    #[error(transparent)]
    StorePlace(#[from] StorePlaceError),
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
        let store = BlockingStore::open(&settings.store_location(&home, &operator)?)?;
        Ok(Self {
            event_writer: Arc::new(EventWriter::new(store.clone())),
            store,
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

    /// Opens an installation that exists, to read its records. Nothing in the home is made or changed: no key, no table, no
    /// cache. Runs that a dead process left stay as they are.
    pub fn open_to_read(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let home = Home::existing(settings.home.as_ref().ok_or(HomeError::Nowhere)?)?;
        let key = Arc::new(InstallationKey::existing(&home.keys())?);
        // Without the private key no list of checked runs is written.
        let trust_log = TrustLog::open(home.root(), key.public(), None);
        let programs = Admissions::open(home.admissions(), trust_log.clone()).programs();
        let operator = OperatorSettings::read(&home.settings())?;
        let store = BlockingStore::open_to_read(&settings.store_location(&home, &operator)?)?;
        Ok(Self {
            event_writer: Arc::new(EventWriter::new(store.clone())),
            store,
            key,
            trust_log,
            git: Git::find(&settings.search_path)?,
            engines: Registry::new(settings.herma.clone(), None, programs, &operator.acp),
            operator,
            cancellation: CancellationToken::default(),
            home,
            clock,
            settings,
        })
    }

    /// The approvers.
    #[must_use]
    pub fn approvers(&self) -> Approvers {
        Approvers::open(self.trust_log.clone())
    }

    /// The records by which people let things in.
    #[must_use]
    pub fn admissions(&self) -> Admissions {
        Admissions::open(self.home.admissions(), self.trust_log.clone())
    }

    /// The egress lists, and the hosts that runs have learned.
    #[must_use]
    pub fn egress(&self) -> EgressFiles {
        EgressFiles::open(self.home.egress())
    }

    /// The policies for tool calls: herma's own and the operator's.
    pub fn policies(&self) -> Result<Policies, PolicyError> {
        policies(&self.home)
    }

    /// The keys whose signatures count here: this installation's on evidence, its approvers' on outcomes.
    #[must_use]
    pub fn trust(&self) -> Trust {
        self.approvers().trust()
    }

    /// The evidence of this installation's runs.
    #[must_use]
    pub fn evidence(&self) -> RunEvidence<'_> {
        RunEvidence { home: &self.home, store: &self.store, approvers: self.approvers() }
    }

    /// The run whose bundle must be in the directory of `run_id`, with the contract that the store has for it.
    #[must_use]
    pub fn expected_run(&self, run_id: RunId) -> ExpectedRun {
        self.evidence().expected_run(run_id)
    }

    /// The proofs of stages.
    #[must_use]
    pub fn proofs(&self) -> Proofs<'_> {
        Proofs::new(self.evidence(), &self.key)
    }

    /// The outcomes of runs that landed.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes<'_> {
        Outcomes::new(self.evidence(), &self.git, &*self.clock)
    }

    /// The facts that decide whether an admission counts now, for a run that is in the store already.
    #[must_use]
    pub fn admission_context(&self) -> AdmissionContext<'_> {
        AdmissionContext {
            approvers: self.approvers(),
            now: self.clock.now(),
            herma_version: VERSION,
            temp_dirs: SYSTEM_TEMP_DIRS.map(PathBuf::from).to_vec(),
            home: self.home.root().to_owned(),
            runs_since: Box::new(|id, since| count_runs(&self.store, id, since)),
        }
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

    /// The clock of this process.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// git, hardened.
    #[must_use]
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The values that the installation was opened with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn search_path(&self) -> &std::ffi::OsStr {
        &self.settings.search_path
    }

    /// The directory in which the probes plant canaries. A user without a home has nothing there that could be read.
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

// Servers and run services share one installation over threads.
const _: () = {
    const fn shareable<T: Send + Sync + 'static>() {}
    shareable::<Installation>();
};
