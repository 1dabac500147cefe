//! Takes back an application: exactly the patch, and only if the files or the branch are still those that it left.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use herma_core::{RepoPath, RunId};
use herma_git::{ObjectFormat, PersonalBranch, SourceRepo, Unlanded};
use herma_harness::Installation;
use herma_home::Home;

use crate::error::ApplyError;
use crate::files::{Found, WorkTree, aside, bring};
use crate::journal::{FileChange, FileState, Form, Journal, Record, State, read};
use crate::obstacles::other_file;

/// An application that was taken back.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The repository.
    pub directory: PathBuf,
    /// The files that are as before.
    pub files: Vec<RepoPath>,
    /// The branch that is deleted.
    pub branch: Option<String>,
}

/// The application of a run, if there is one.
pub fn recorded(home: &Home, run: RunId) -> Result<Record, ApplyError> {
    let record = read(&home.applied().join(run.to_string())).map_err(ApplyError::Record)?;
    record.ok_or(ApplyError::NotApplied(run))
}

/// Takes back the application of a run, also one that was cut off.
pub fn undo(installation: &Installation, run: RunId) -> Result<Undone, ApplyError> {
    let journal = Journal::open(&installation.home, run).map_err(ApplyError::Record)?;
    let lock = installation.home.try_lock_landing().map_err(ApplyError::Record)?;
    let _lock = lock.ok_or_else(|| ApplyError::Landing("a result is landing now".to_owned()))?;
    let record = journal.read().map_err(ApplyError::Record)?;
    let mut record = record.ok_or(ApplyError::NotApplied(run))?;
    if record.run_id != run {
        let other = io::Error::other(format!("it is that of run {}", record.run_id));
        return Err(ApplyError::Record(other));
    }
    let directory = record.directory.clone();
    match &record.form {
        Form::Files { files, .. } => {
            let files = files.iter().map(|file| file.path.clone()).collect();
            take_back(&journal, &mut record)?;
            Ok(Undone { directory, files, branch: None })
        }
        Form::Branch(branch) => {
            delete(installation, &record, branch)?;
            let branch = branch.name().to_owned();
            journal.forget().map_err(ApplyError::Record)?;
            Ok(Undone { directory, files: Vec::new(), branch: Some(branch) })
        }
    }
}

fn delete(installation: &Installation, record: &Record, branch: &PersonalBranch) -> Result<(), ApplyError> {
    let name = record.directory.display().to_string();
    let source = SourceRepo::open(installation.git(), &record.directory, &name, None)?;
    let refuse = |why: String| Err(ApplyError::Branch { name: branch.name().to_owned(), why });
    match source.delete_branch(branch)? {
        Unlanded::NoTrace | Unlanded::ObjectsKept => Ok(()),
        Unlanded::RefMoved(commit) => refuse(format!("it points to {commit} now")),
        Unlanded::CheckedOut => refuse("it is checked out".to_owned()),
    }
}

/// Brings every file back to its state before, and removes the record.
pub(crate) fn take_back(journal: &Journal, record: &mut Record) -> Result<(), ApplyError> {
    let Form::Files { files, made } = record.form.clone() else { return Ok(()) };
    let run = record.run_id;
    let contents = journal.contents();
    let format = format_of(&files);
    let work = WorkTree::open(&record.directory, format, contents.clone()).map_err(ApplyError::Record)?;
    let changed = changed(&work, run, &files, record.state).map_err(ApplyError::Record)?;
    if !changed.is_empty() {
        return Err(ApplyError::Changed { run, paths: changed, contents });
    }
    if record.state == State::Applied {
        record.state = State::Undoing;
        journal.write(record).map_err(ApplyError::Record)?;
    }
    for (at, file) in files.iter().enumerate().rev() {
        let states = (file.after.as_ref(), file.before.as_ref());
        let back = |work: &WorkTree| {
            if is_as(&work.state(&file.path)?, file, &files, Side::Before) {
                return Ok(());
            }
            bring(work, &file.path, &aside(run, at), states)
        };
        let state = "the rest is not taken back yet: run the same command again";
        back(&work).map_err(|cause| ApplyError::Write { path: file.path.clone(), cause, state })?;
    }
    for directory in made.iter().rev() {
        work.remove_directory(directory).map_err(ApplyError::Record)?;
    }
    journal.forget().map_err(ApplyError::Record)
}

/// The files that are not as the application left them. Where it was cut off, each may also be as before. A part of a file that was
/// being written is removed.
fn changed(
    work: &WorkTree,
    run: RunId,
    files: &[FileChange],
    state: State,
) -> io::Result<Vec<(RepoPath, String)>> {
    let new: BTreeSet<&RepoPath> = with_state(files, Side::After).collect();
    let mut before = Vec::new();
    for file in files {
        before.push(is_as(&work.state(&file.path)?, file, files, Side::Before));
    }
    // A person may have taken back everything by other means.
    let cut_off = state != State::Applied || before.iter().all(|is_before| *is_before);
    let mut changed = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let (before, after) = (file.before.as_ref(), file.after.as_ref());
        let found = work.state(&file.path)?;
        let is_expected =
            is_as(&found, file, files, Side::After) || (cut_off && is_as(&found, file, files, Side::Before));
        // A file comes back where the patch made a directory: nothing else may be in it.
        let other = match found {
            Found::Directory if before.is_some() => other_file(work, &file.path, &new)?,
            _ => None,
        };
        let why = if !is_expected {
            found.in_words().to_owned()
        } else if let Some(other) = other {
            format!("the untracked `{}` is in its place", other.shortened())
        } else if cut_off && !work.remove_aside(&file.path, &aside(run, at), [before, after])? {
            let name = String::from_utf8_lossy(&aside(run, at)).into_owned();
            format!("a version of it that you saved meanwhile is beside it as `{name}`")
        } else {
            continue;
        };
        changed.push((file.path.clone(), why));
    }
    Ok(changed)
}

/// One of the two states of an application.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl FileChange {
    fn state(&self, side: Side) -> Option<&FileState> {
        match side {
            Side::Before => self.before.as_ref(),
            Side::After => self.after.as_ref(),
        }
    }
}

/// The paths that have a file on this side.
fn with_state(files: &[FileChange], side: Side) -> impl Iterator<Item = &RepoPath> {
    files.iter().filter(move |file| file.state(side).is_some()).map(|file| &file.path)
}

/// Whether the file is as on this side. Where it does not exist then, another file of the patch may have its path as a directory, or
/// have a directory of its path.
fn is_as(found: &Found, file: &FileChange, files: &[FileChange], side: Side) -> bool {
    let is_below = |path: &RepoPath, directory: &RepoPath| {
        path.as_bytes().strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    let mut others = with_state(files, side);
    match (found, file.state(side)) {
        (found, Some(state)) => found.is(Some(state)),
        (Found::Nothing, None) => true,
        (Found::Directory, None) => others.any(|other| is_below(other, &file.path)),
        (Found::Unreachable, None) => others.any(|other| is_below(&file.path, other)),
        (_, None) => false,
    }
}

fn format_of(files: &[FileChange]) -> ObjectFormat {
    let id = files.iter().find_map(|file| file.before.as_ref().or(file.after.as_ref()));
    id.map_or(ObjectFormat::Sha1, |state| ObjectFormat::of_id(&state.id))
}
