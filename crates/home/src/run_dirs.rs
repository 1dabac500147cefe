//! The directories of one run, below `runs/`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::durable::sync_dir;
use crate::removal::remove_any;

/// The directories of one run.
#[derive(Clone, Debug)]
pub struct RunDirs {
    root: PathBuf,
}

impl RunDirs {
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Makes the run's directory.
    pub fn create(&self) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.root)?;
        DirBuilder::new().mode(0o700).create(self.bundle())?;
        sync_dir(self.root.parent().unwrap_or(&self.root))
    }

    /// The run's directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The evidence bundle.
    #[must_use]
    pub fn bundle(&self) -> PathBuf {
        self.root.join("bundle")
    }

    /// The workspace of the agent.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// The engine's own directory: its home, configuration and prompt.
    #[must_use]
    pub fn engine(&self) -> PathBuf {
        self.root.join("engine")
    }

    /// herma's own git directory.
    #[must_use]
    pub fn git(&self) -> PathBuf {
        self.root.join("git")
    }

    /// The run's router: its records and its socket. The agent sees the socket only.
    #[must_use]
    pub fn router(&self) -> PathBuf {
        self.root.join("router")
    }

    /// The socket of the run's egress proxy. The agent sees the socket only.
    #[must_use]
    pub fn egress(&self) -> PathBuf {
        self.root.join("egress")
    }

    /// The socket at which the run's engine asks about tool calls.
    #[must_use]
    pub fn governance(&self) -> PathBuf {
        self.root.join("governance")
    }

    /// The work directory of the confinement probes.
    #[must_use]
    pub fn probes(&self) -> PathBuf {
        self.root.join("probes")
    }

    /// The fresh checkout that verification runs on.
    #[must_use]
    pub fn verification(&self) -> PathBuf {
        self.root.join("verification")
    }

    /// The fresh checkout for the second verification, with the tests of the baseline.
    #[must_use]
    pub fn old_tests(&self) -> PathBuf {
        self.root.join("old-tests")
    }

    /// The agent's home, where the contract has an environment.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The home of verification, where the contract has an environment.
    #[must_use]
    pub fn verification_home(&self) -> PathBuf {
        self.root.join("verification-home")
    }

    /// The home of the second verification.
    #[must_use]
    pub fn old_tests_home(&self) -> PathBuf {
        self.root.join("old-tests-home")
    }

    /// The checkout of the base that the preflight runs on.
    #[must_use]
    pub fn preflight(&self) -> PathBuf {
        self.root.join("preflight")
    }

    /// The home of the preflight.
    #[must_use]
    pub fn preflight_home(&self) -> PathBuf {
        self.root.join("preflight-home")
    }

    /// The inputs of the environment while it is built.
    #[must_use]
    pub fn environment(&self) -> PathBuf {
        self.root.join("environment")
    }

    /// The changes that jobs make in the mounted directories of an environment.
    #[must_use]
    pub fn changes(&self) -> PathBuf {
        self.root.join("changes")
    }

    /// The disposable repository of a stage 4 run.
    #[must_use]
    pub fn disposable(&self) -> PathBuf {
        self.root.join("disposable")
    }

    /// The plan of the run, for recovery.
    #[must_use]
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// The facts found so far, for recovery.
    #[must_use]
    pub fn facts(&self) -> PathBuf {
        self.root.join("facts.jsonl")
    }

    /// The kept part of the agent's session.
    #[must_use]
    pub fn session(&self) -> PathBuf {
        self.root.join("session")
    }

    /// Removes everything but the bundle, the session and the plan, and of workspace and disposable repository those that are not
    /// kept. Until the plan is removed the run can be closed again.
    pub fn clear(&self, keep_workspace: bool, keep_disposable: bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            let kept = path == self.bundle()
                || path == self.session()
                || (keep_workspace && path == self.workspace())
                || (keep_disposable && path == self.disposable());
            if !kept && path != self.plan() {
                remove_any(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the plan: the run is closed and recorded in the store.
    pub fn forget_plan(&self) -> io::Result<()> {
        remove_any(&self.plan())
    }
}
