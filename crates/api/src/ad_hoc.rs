//! The ad-hoc contract of `herma do`: flags, a person's defaults, the repository's narrowing and detection, compiled into one
//! contract. docs/settings.md has the precedence.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::Stage;
use herma_core::admission::{AdmissionId, ModelRef};
use herma_core::contract::{AdHocContract, ModelChoice, RepoRef, ad_hoc_contract};
use herma_core::defaults::{MAX_BYTES, Narrowing, PlacedNarrowing, WorkDefaults};
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::environment::{BadEnvironment, EnvironmentDefinition};
use herma_core::report::Admission;
use herma_environments::definition::{REPOSITORY_FILE, parse as parse_environment, with_rules};
use herma_environments::detect::{Proposal, RepositoryFiles, detect};
use herma_git::{GitError, SourceRepo};
use herma_harness::{DefaultsError, Installation};
use herma_home::EnabledEngines;
use herma_rules::pattern_within;

use crate::contract_file::{ContractError, ReadContract, contract_of_text};
use crate::engines::find_engine;
use crate::file_place::at_place;
use crate::{DestinationError, EngineRequestError, resolve_destination};

/// The file by which a repository narrows the defaults.
pub const DEFAULTS_FILE: &str = ".herma/defaults.yaml";

/// A task for a repository, with the flags that were given.
#[derive(Clone, Debug)]
pub struct AdHocTask<'a> {
    /// The task.
    pub task: &'a str,
    /// A directory in the repository.
    pub directory: &'a Path,
    /// The flags.
    pub flags: WorkDefaults,
}

/// The contract of a task, and how it is run.
#[derive(Clone, Debug)]
pub struct AdHoc {
    /// The contract.
    pub read: ReadContract,
    /// The engine.
    pub engine: EngineName,
    /// The destination, if it is not the default.
    pub destination: Option<DestinationKind>,
    /// The detected facts that were used, in sentences.
    pub reasons: Vec<String>,
}

/// A task cannot become a contract.
#[derive(Debug, thiserror::Error)]
pub enum AdHocError {
    /// The task is empty.
    #[error("the task is empty")]
    NoTask,
    /// The directory is in no repository.
    #[error("{} is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Its files cannot be listed.
    #[error("the files of the repository cannot be listed: {0}")]
    Files(io::Error),
    /// The person's defaults cannot be read.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// A file of the repository is not valid, or would widen the person's defaults.
    #[error("{}", at_place(Path::new(file), bad))]
    Repository {
        /// Which file, at the base commit.
        file: &'static str,
        /// The problem and its place.
        bad: BadEnvironment,
    },
    /// Nothing says which engine works.
    #[error("no engine is chosen")]
    NoEngine,
    /// There is no such engine.
    #[error(transparent)]
    Engine(#[from] EngineRequestError),
    /// The engine needs a model, and nothing says which.
    #[error("the engine `{engine}` needs a model, and none is chosen")]
    NoModel {
        /// The engine.
        engine: EngineName,
        /// The admitted models.
        admitted: Vec<String>,
    },
    /// Nothing says which paths may change.
    #[error("no path that may change is known")]
    NoPaths,
    /// Nothing says how the result is verified.
    #[error("no verification command is known")]
    NoCommands,
    /// The contract is not valid.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The destination cannot be resolved.
    #[error(transparent)]
    Destination(#[from] DestinationError),
}

impl AdHocError {
    /// The next step for the user; none where none is known.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        let step = match self {
            Self::NoTask => "say what to do: `herma do \"fix the typo in README.md\"`",
            Self::NoRepository(_) => "go into a repository, or name one with `--repo DIR`",
            Self::Git(_) => "commit something first, or name another repository with `--repo DIR`",
            Self::Files(_) => "make the directory readable",
            Self::Defaults(error) => return Some(error.next_step()),
            Self::Repository { .. } => {
                "correct the file and commit it, or permit it yourself with a flag or in your defaults for this repository; \
                 docs/settings.md has the rules"
            }
            Self::NoEngine => {
                "`herma quickstart` sets one up; or name one with `--engine NAME`, or with `do: { engine: NAME }` in settings.yaml"
            }
            Self::Engine(error) => return Some(error.next_step()),
            Self::NoModel { admitted, .. } if admitted.is_empty() => {
                "no model is admitted: `herma quickstart` sets one up, `herma models` shows what is configured"
            }
            Self::NoModel { admitted, .. } => {
                return Some(format!("name one with `--model`: {}", admitted.join(", ")));
            }
            Self::NoPaths => "name them with `--allow GLOB`, for example `--allow 'src/**'`",
            Self::NoCommands => "name one with `--verify CMD`, for example `--verify 'npm test'`",
            Self::Contract(error) => return error.next_step(),
            Self::Destination(error) => return Some(error.next_step()),
        };
        Some(step.to_owned())
    }
}

/// Compiles a task into a contract at stage 3.
pub fn ad_hoc(installation: &Installation, task: &AdHocTask<'_>) -> Result<AdHoc, AdHocError> {
    if task.task.trim().is_empty() {
        return Err(AdHocError::NoTask);
    }
    let root = top_of(task.directory)?;
    let (repo, dir) = named(&root);
    let source = SourceRepo::open(installation.git(), &root, repo.as_str(), None)?;
    let files = RepositoryFiles::list(&root).map_err(AdHocError::Files)?;
    // A run starts from the base: a file that git does not know decides nothing.
    let at_base: HashSet<Vec<u8>> =
        source.paths_at_base()?.iter().map(|path| path.as_bytes().to_vec()).collect();
    let files = files.only(|path| at_base.contains(path.as_bytes()));
    let proposal = detect(&files);
    let own = installation.repository_defaults(&root)?;
    let lower = WorkDefaults::from(installation.operator.do_.clone()).over(detected(&proposal));
    let narrowing = narrowing(installation, &source, &own, &lower, &task.flags)?;
    let own_destination = task.flags.destination.or(own.destination);
    let all = narrowing
        .apply(task.flags.clone(), own.clone(), lower, pattern_within)
        .map_err(|bad| AdHocError::Repository { file: DEFAULTS_FILE, bad })?;
    check_choices(installation, &narrowing, &task.flags, &own)?;
    let name = all.engine.clone().ok_or(AdHocError::NoEngine)?;
    let engine = find_engine(installation, &name)?;
    // A default for agents is nothing that an engine without a model could use.
    let model = all.model.filter(|_| engine.asks().is_some() || task.flags.model.is_some());
    if engine.asks().is_some() && model.is_none() {
        return Err(AdHocError::NoModel { engine: name, admitted: admitted_models(installation) });
    }
    let allowed_paths = all.allowed_paths.filter(|paths| !paths.is_empty()).ok_or(AdHocError::NoPaths)?;
    let verify = all.verify.filter(|commands| !commands.is_empty()).ok_or(AdHocError::NoCommands)?;
    let Narrowing { forbidden_paths, forbidden_actions, .. } = &narrowing.values;
    let text = ad_hoc_contract(&AdHocContract {
        task: task.task,
        repo: &repo,
        allowed_paths: &allowed_paths,
        forbidden_paths,
        forbidden_actions,
        verify: &verify,
        environment: all.environment.as_ref(),
        model: model.as_ref().map(choice).as_ref(),
        limits: &all.limits.complete(),
    });
    let read = contract_of_text("the contract of this task", text, dir, installation.settings())?;
    let chosen = resolve_destination(own_destination, installation, &read)?;
    let destination = chosen.or(installation.operator.do_.destination);
    let mut reasons = Vec::new();
    // Reasons are about environment and commands alike; they are shown if any of these was used.
    if task.flags.verify.is_none() && own.verify.is_none() {
        reasons = proposal.reasons;
    }
    Ok(AdHoc { read, engine: name, destination, reasons })
}

fn choice(model: &ModelRef) -> ModelChoice {
    let (provider, model) = (model.provider.to_string(), model.model.to_string());
    ModelChoice { provider, model, fallback: Vec::new(), auxiliary: Vec::new() }
}

/// The top of the repository around a directory.
fn top_of(directory: &Path) -> Result<PathBuf, AdHocError> {
    let missing = || AdHocError::NoRepository(directory.to_owned());
    let directory = directory.canonicalize().map_err(|_| missing())?;
    let top = directory.ancestors().find(|above| above.join(".git").exists());
    top.map(Path::to_owned).ok_or_else(missing)
}

/// The repository's name in the contract, and the directory that it is relative to: the one above, so that reports say which
/// repository it was, and no absolute path.
fn named(root: &Path) -> (RepoRef, PathBuf) {
    let name = root.file_name().and_then(|name| name.to_str());
    let relative = name.and_then(|name| format!("./{name}").parse::<RepoRef>().ok());
    match (relative, root.parent()) {
        (Some(repo), Some(parent)) => (repo, parent.to_owned()),
        _ => (RepoRef::here(), root.to_owned()),
    }
}

fn detected(proposal: &Proposal) -> WorkDefaults {
    let allowed_paths: Vec<_> = proposal.allowed_paths.iter().filter_map(|path| path.parse().ok()).collect();
    let is_empty = proposal.definition == EnvironmentDefinition::default();
    WorkDefaults {
        allowed_paths: (!allowed_paths.is_empty()).then_some(allowed_paths),
        verify: (!proposal.verify.is_empty()).then(|| proposal.verify.clone()),
        environment: (!is_empty).then(|| proposal.definition.clone()),
        ..WorkDefaults::default()
    }
}

/// The repository's own files at its base: `defaults.yaml`, and `environment.yaml` where that names no environment.
fn narrowing(
    installation: &Installation,
    source: &SourceRepo,
    own: &WorkDefaults,
    lower: &WorkDefaults,
    flags: &WorkDefaults,
) -> Result<PlacedNarrowing, AdHocError> {
    let tools = installation.operator.own_tools();
    let text = source.file_at_base(DEFAULTS_FILE, MAX_BYTES)?.unwrap_or_default();
    let mut narrowing = with_rules(&tools, |rules| PlacedNarrowing::parse(&text, rules))
        .map_err(|bad| AdHocError::Repository { file: DEFAULTS_FILE, bad })?;
    let has_other = flags.environment.is_some() || own.environment.is_some();
    if has_other || narrowing.values.environment.is_some() {
        return Ok(narrowing);
    }
    let Some(text) = source.file_at_base(REPOSITORY_FILE, MAX_BYTES)? else { return Ok(narrowing) };
    let of_repository = |bad| AdHocError::Repository { file: REPOSITORY_FILE, bad };
    let definition = parse_environment(&text, &tools).map_err(of_repository)?;
    let known = lower.environment.iter().flat_map(|found| &found.registries).collect::<Vec<_>>();
    if let Some(registry) = definition.registries.iter().find(|registry| !known.contains(registry)) {
        let expected = "the file of a repository can only narrow what your own defaults permit";
        let bad = BadEnvironment::new(format!("the registry `{registry}` adds hosts"), expected);
        return Err(of_repository(bad));
    }
    narrowing.values.environment = Some(definition);
    Ok(narrowing)
}

/// An engine or a model that the repository chooses must be one that this installation permits already.
fn check_choices(
    installation: &Installation,
    narrowing: &PlacedNarrowing,
    flags: &WorkDefaults,
    own: &WorkDefaults,
) -> Result<(), AdHocError> {
    let refused = |bad| AdHocError::Repository { file: DEFAULTS_FILE, bad };
    if flags.engine.is_none()
        && own.engine.is_none()
        && let Some(name) = &narrowing.values.engine
    {
        let Some(engine) = installation.engines().get(name) else {
            return Err(refused(narrowing.engine_refused(&format!("herma has no engine `{name}`"))));
        };
        if !engine.built_in() && !EnabledEngines::of(&installation.home).is_on(name) {
            return Err(refused(narrowing.engine_refused(&format!("the engine `{name}` is not enabled"))));
        }
        if let Some((stage, _)) = installation.proofs().first_unproven(engine, Stage::CopiedRepo) {
            let why = format!("the engine `{name}` has not proven stage {stage}");
            return Err(refused(narrowing.engine_refused(&why)));
        }
    }
    if flags.model.is_none()
        && own.model.is_none()
        && let Some(model) = &narrowing.values.model
    {
        let id = AdmissionId::Model(model.clone());
        let found = installation.admissions().look(&id, None, &installation.admission_context());
        if found.status != Admission::Admitted {
            return Err(refused(narrowing.model_refused(&format!("the model `{model}` is not admitted"))));
        }
    }
    Ok(())
}

/// The admitted models, by name.
pub(crate) fn admitted_models(installation: &Installation) -> Vec<String> {
    let context = installation.admission_context();
    let listed = installation.admissions().list().unwrap_or_default();
    let models = listed.into_iter().filter_map(|listed| match listed.id {
        Some(id @ AdmissionId::Model(_)) => Some(id),
        _ => None,
    });
    let admitted =
        |id: &AdmissionId| installation.admissions().look(id, None, &context).status == Admission::Admitted;
    models.filter(admitted).map(|id| id.name()).collect()
}
