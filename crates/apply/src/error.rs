//! Why a patch is not applied or taken back, and the next step for each reason.

use std::io;
use std::path::PathBuf;

use herma_core::{RepoPath, RunId};
use herma_git::{GitError, LandError};

/// A patch was not applied or not taken back.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The bundle is not a verified pass.
    #[error("run {run} is not a verified pass: {why}")]
    NotAPass {
        /// The run.
        run: RunId,
        /// The verdict, or the check that failed.
        why: String,
    },
    /// The run changed nothing.
    #[error("run {0} changed no file, so there is nothing to apply")]
    Empty(RunId),
    /// The run has no repository of a person as its target.
    #[error("the result of run {run} cannot be applied: {why}")]
    NoRepository {
        /// The run.
        run: RunId,
        /// The kind of its target.
        why: String,
    },
    /// The repository must not be changed by this command.
    #[error("the repository {} is protected: {why}", directory.display())]
    Protected {
        /// The repository.
        directory: PathBuf,
        /// The record that says so.
        why: String,
    },
    /// A stage 5 run works on a target.
    #[error("{0}: a landing and `herma apply` exclude each other")]
    Landing(String),
    /// HEAD has other files than the run started from.
    #[error("the base has moved: HEAD of {} is {head}, and its files are not those that run {run} started from", directory.display())]
    BaseMoved {
        /// The run.
        run: RunId,
        /// The repository.
        directory: PathBuf,
        /// Its commit.
        head: String,
    },
    /// A file that the patch changes has changes of the person, or something is in the way of a new one.
    #[error("{} of the patch {} in the way: {}", count_of(paths.len()), if paths.len() == 1 { "is" } else { "are" }, listed(paths))]
    Overlap {
        /// The paths, each with the obstacle.
        paths: Vec<(RepoPath, String)>,
    },
    /// The patch is in a work tree already.
    #[error("the patch of run {run} is already applied: {}", place.display())]
    Applied {
        /// The run.
        run: RunId,
        /// The repository.
        place: PathBuf,
    },
    /// An earlier application or undo was cut off.
    #[error("applying the patch of run {run} in {} was cut off before it was complete", place.display())]
    CutOff {
        /// The run.
        run: RunId,
        /// The repository.
        place: PathBuf,
    },
    /// There is nothing to undo.
    #[error("run {0} is not applied anywhere")]
    NotApplied(RunId),
    /// Files changed since they were applied.
    #[error("run {run} is not taken back, because {} changed since: {}", count_of(paths.len()), listed(paths))]
    Changed {
        /// The run.
        run: RunId,
        /// The paths, each with its state.
        paths: Vec<(RepoPath, String)>,
        /// The directory of the contents before and after.
        contents: PathBuf,
    },
    /// The branch is not what herma made.
    #[error("the branch `{name}` is not deleted: {why}")]
    Branch {
        /// The branch.
        name: String,
        /// Its state.
        why: String,
    },
    /// The name is no name for a new branch.
    #[error("`{0}` cannot be the name of a new branch")]
    BranchName(String),
    /// git does not know who the person is.
    #[error("git knows no name and email for a commit of yours in {}", .0.display())]
    NoIdentity(PathBuf),
    /// The branch could not be made.
    #[error(transparent)]
    Land(#[from] LandError),
    /// A file could not be changed.
    #[error("`{path}` could not be changed: {cause}; {state}")]
    Write {
        /// The file.
        path: RepoPath,
        /// The cause.
        cause: io::Error,
        /// The state of the work tree.
        state: &'static str,
    },
    /// herma's own record could not be read or written.
    #[error("herma's record of the application: {0}")]
    Record(#[source] io::Error),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn count_of(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

fn listed(paths: &[(RepoPath, String)]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> =
        paths.iter().take(SHOWN).map(|(path, why)| format!("`{}` ({why})", path.shortened())).collect();
    match paths.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl ApplyError {
    /// The next step for the person.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::NotAPass { run, .. } => {
                format!("`herma show {}` says why; only a verified pass is applied", run.short())
            }
            Self::Empty(_) => "`herma logs` shows what the agent did".to_owned(),
            Self::NoRepository { .. } => "`herma diff` prints its patch".to_owned(),
            Self::Protected { .. } => {
                "change it in the way that its owners require; `herma diff` prints the patch".to_owned()
            }
            Self::Landing(_) => "wait until that run has ended (`herma runs`), then apply".to_owned(),
            Self::BaseMoved { .. } => {
                "check out the commit that the run started from, or run the contract again on this one".to_owned()
            }
            Self::Overlap { .. } => {
                "commit, stash or move these files, then apply; or make a branch with `--branch NAME`, which does not touch the \
                 work tree"
                    .to_owned()
            }
            Self::Applied { run, .. } | Self::CutOff { run, .. } => {
                format!("take it back with `herma apply --undo {}`", run.short())
            }
            Self::NotApplied(_) => "`herma apply RUN` applies a run".to_owned(),
            Self::Changed { contents, .. } => format!(
                "put these files back, then undo; the contents before and after are in {}, each named by its git blob id",
                contents.display()
            ),
            Self::Branch { name, .. } => format!("delete it yourself if you want to: `git branch -D {name}`"),
            Self::BranchName(_) => "choose another name, which git permits and which does not begin with `herma/`".to_owned(),
            Self::NoIdentity(_) => {
                "`git config --global user.name NAME` and `git config --global user.email EMAIL`".to_owned()
            }
            Self::Land(_) => "nothing was changed; the message says what is in the way".to_owned(),
            Self::Write { .. } => "see that the file and its directory can be written, then try again".to_owned(),
            Self::Record(_) => "free space or make herma's home writable, then try again".to_owned(),
            Self::Git(_) => "run it in the repository of the run, or name that with `--repo DIR`".to_owned(),
        }
    }

    /// Whether the input was wrong, in contrast to a precondition that does not hold.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::BranchName(_) | Self::NotApplied(_) | Self::NoIdentity(_) | Self::Git(_))
    }

    /// Whether the system failed.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Record(_) | Self::Write { .. })
    }
}
