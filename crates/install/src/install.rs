//! The steps of an installation: fetch, check, make read-only, name by digest, draft the admission.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::admission::{AdmissionDraft, AdmissionId, EngineDraft, Incomplete, ReviewTrigger};
use herma_core::engine::EngineName;
use herma_core::{CancellationToken, Clock, Digest, RunId};
use herma_destination::Destination;
use herma_engines::{Engine, Origin, Registry, Source, tree_digest};
use herma_home::{Home, remove_tree};
use herma_trust::{AdmissionError, Admissions};

use crate::error::InstallError;
use crate::fetch::{FetchSite, fetch};
use crate::fetcher::Fetcher;
use crate::host_tools::HostTools;
use crate::npm::Npm;
use crate::pip::Pip;

/// An order to install an agent.
#[derive(Clone, Debug)]
pub struct InstallOrder {
    /// The engine whose agent it is.
    pub engine: EngineName,
    /// Another version than the one that herma was tried with, or that the operator's settings name.
    pub version: Option<String>,
    /// Whether the registry may be in a private network: its addresses need not be public then.
    pub own_network: bool,
}

/// An installed agent.
#[derive(Clone, Debug)]
pub struct InstalledTree {
    /// The engine.
    pub engine: EngineName,
    /// The package's version.
    pub version: String,
    /// The digest of the engine with it.
    pub digest: Digest,
    /// Its path.
    pub tree: PathBuf,
    /// The draft of its admission.
    pub draft: PathBuf,
    /// The file with its license, if the package has one.
    pub license_file: Option<PathBuf>,
    /// The fields that a person must fill in.
    pub lacks: Option<Incomplete>,
}

/// Installs agents. It takes the parts of an installation that it needs, and no run.
pub struct Installer<'a> {
    /// The home that trees are kept in.
    pub home: &'a Home,
    /// The engines of this version.
    pub engines: &'a Registry,
    /// The admissions, for the draft.
    pub admissions: Admissions,
    /// The sandbox that packages are fetched in.
    pub sandbox: &'a dyn Destination,
    /// The programs of the host that fetch packages.
    pub host: HostTools,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ends the fetching.
    pub cancellation: CancellationToken,
}

impl Installer<'_> {
    /// Installs an agent and writes the draft of its admission. Nothing of it is run.
    pub fn install(&self, order: &InstallOrder) -> Result<InstalledTree, InstallError> {
        let engine = self.engines.get(&order.engine);
        let nothing = || InstallError::NoPackage {
            engine: order.engine.clone(),
            instead: engine.and_then(Engine::without_source),
        };
        let (engine, package) =
            engine.and_then(|engine| Some((engine, engine.source()?))).ok_or_else(nothing)?;
        let version = order.version.as_deref().unwrap_or(package.version);
        if !package.origin.is_exact(version) {
            return Err(InstallError::NotExact(version.to_owned()));
        }
        let id = AdmissionId::Engine(order.engine.clone());
        if self.admissions.signature(&id).map_err(InstallError::Admission)?.is_some() {
            return Err(InstallError::Admission(AdmissionError::IsSigned(id)));
        }
        let by: Box<dyn Fetcher> = match package.origin {
            Origin::Npm => Box::new(Npm::find(&self.host, &package)?),
            Origin::PyPi { pythons } => Box::new(Pip::find(&self.host, pythons)?),
        };
        let mut entropy = [0; 10];
        getrandom::fill(&mut entropy)
            .map_err(|e| InstallError::io("a name for the job", io::Error::other(e)))?;
        let job = RunId::new(self.clock.now(), entropy);
        // Marked like a run: if herma is killed meanwhile, the next command removes the fetched files.
        let active = self.home.activate(job).map_err(|e| InstallError::io("herma's home", e))?;
        let dirs = self.home.run(job);
        dirs.create().map_err(|e| InstallError::io("herma's home", e))?;
        let site = FetchSite { sandbox: self.sandbox, clock: &self.clock, cancellation: &self.cancellation };
        let fetched = fetch(&site, &dirs, job, &*by, (&package, version), order.own_network)
            .and_then(|()| keep(self.home, &dirs.workspace(), &package, version));
        remove_tree(dirs.root()).map_err(|e| InstallError::io("what was left of fetching", e))?;
        active.done().map_err(|e| InstallError::io("herma's home", e))?;
        let (tree, digest) = fetched?;
        let digest = engine.digest_over(digest);
        let draft = draft(order, &package, version, &tree, digest)?;
        let lacks = draft.lacks();
        let license_file = package.license_file(&tree);
        let file = self.admissions.write_draft(&draft).map_err(InstallError::Admission)?;
        Ok(InstalledTree {
            engine: order.engine.clone(),
            version: version.to_owned(),
            digest,
            license_file,
            tree,
            draft: file,
            lacks,
        })
    }
}

/// Moves a fetched tree to the directory that its digest names, read-only.
fn keep(
    home: &Home,
    fetched: &Path,
    package: &Source<'_>,
    version: &str,
) -> Result<(PathBuf, Digest), InstallError> {
    let program = fetched.join(package.program);
    let is_program = fs::symlink_metadata(&program)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    let found = package.installed(fetched);
    if !is_program || found.as_deref() != Some(version) {
        return Err(InstallError::NotThere {
            package: package.name.to_owned(),
            version: version.to_owned(),
            program: package.program.to_owned(),
        });
    }
    let unkept = |e| InstallError::io("what was fetched", e);
    close_up(fetched).map_err(unkept)?;
    let digest = tree_digest(fetched).map_err(unkept)?;
    let all = home.installed();
    DirBuilder::new().recursive(true).mode(0o700).create(&all).map_err(unkept)?;
    let tree = all.join(digest.hex());
    if tree.exists() {
        // An existing tree is reused only if it still has its digest.
        if tree_digest(&tree).ok() == Some(digest) {
            return Ok((tree, digest));
        }
        remove_tree(&tree).map_err(unkept)?;
    }
    // A directory that cannot be written cannot be moved either.
    fs::set_permissions(fetched, Permissions::from_mode(0o755)).map_err(unkept)?;
    fs::rename(fetched, &tree).map_err(unkept)?;
    fs::set_permissions(&tree, Permissions::from_mode(0o555)).map_err(unkept)?;
    Ok((tree, digest))
}

/// Takes every right to write away. Links have none.
fn close_up(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if meta.is_dir() {
            close_up(&entry.path())?;
        } else if meta.is_file() {
            let mode = if meta.permissions().mode() & 0o111 == 0 { 0o444 } else { 0o555 };
            fs::set_permissions(entry.path(), Permissions::from_mode(mode))?;
        }
    }
    fs::set_permissions(dir, Permissions::from_mode(0o555))
}

/// The draft of the admission, without the license decision, which a person makes, and without fields that are
/// unknown for a package that herma does not know.
fn draft(
    order: &InstallOrder,
    package: &Source<'_>,
    version: &str,
    tree: &Path,
    digest: Digest,
) -> Result<AdmissionDraft, InstallError> {
    let bad = |why: String| InstallError::io("the draft of its admission", io::Error::other(why));
    let said = |text: String| text.parse().map_err(bad);
    let how = match package.origin {
        Origin::Npm => "npm install --ignore-scripts",
        Origin::PyPi { .. } => "pip install --only-binary :all:",
    };
    Ok(AdmissionDraft::Engine(EngineDraft {
        program: tree.to_string_lossy().parse().map(Some).map_err(bad)?,
        source: Some(said(format!("{} {}", package.origin.name(), package.name))?),
        pin: Some(said(version.to_owned())?),
        retrieval: Some(said(format!("{how} {}", package.wanted(version).join(" ")))?),
        license: package.license_of(tree).map(said).transpose()?,
        digest: Some(digest),
        identity: package.identity_of(version).map(said).transpose()?,
        review_trigger: Some(ReviewTrigger::DigestChange),
        ..EngineDraft::new(order.engine.clone())
    }))
}
