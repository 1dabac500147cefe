//! Applies a patch to the work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use herma_core::report::{Entry, Mode};
use herma_core::{RepoPath, RunId};
use herma_git::{GitDir, GitError, ObjectFormat, SourceRepo, TreeEntry, lay_out};
use herma_harness::Installation;

use crate::base_check;
use crate::error::ApplyError;
use crate::files::{Found, WorkTree, aside, bring};
use crate::journal::{FileChange, FileState, Form, Journal, Record, RecordSchema, State};
use crate::obstacles::obstacles;
use crate::subject::{Subject, not_applied_yet};
use crate::undo;

/// Applies the patch to the work tree of the subject: files only, and no git command runs in it afterwards.
pub fn apply(installation: &Installation, subject: &Subject) -> Result<Record, ApplyError> {
    let run = subject.report.run_id;
    let journal = Journal::open(&installation.home, run).map_err(ApplyError::Record)?;
    let _lock = exclude_landings(installation, subject)?;
    not_applied_yet(undo::recorded(&installation.home, run), run)?;
    let source = base_check::open(installation, &subject.directory)?;
    let staged: BTreeSet<RepoPath> = source.staged()?.into_iter().collect();
    let contents = journal.make().map_err(ApplyError::Record)?;
    let scratch = tempfile::tempdir().map_err(ApplyError::Record)?;
    let (git_dir, base, tree) = patched(subject, &source, &scratch.path().join("git"))?;
    let mut files = changes(&git_dir.entries(&base)?, &git_dir.entries(&tree)?);
    save(&git_dir, &files, &contents)?;
    journal.sync_contents().map_err(ApplyError::Record)?;

    let work = WorkTree::open(&subject.directory, git_dir.format(), contents).map_err(ApplyError::Record)?;
    let found = obstacles(&work, &files, &staged).map_err(ApplyError::Record)?;
    if !found.is_empty() {
        journal.forget().map_err(ApplyError::Record)?;
        return Err(ApplyError::Overlap { paths: found });
    }
    keep_permissions(&work, &mut files).map_err(ApplyError::Record)?;
    let made = new_directories(&work, &files).map_err(ApplyError::Record)?;
    let mut record = Record {
        schema: RecordSchema::V1,
        run_id: run,
        attestation: subject.attestation,
        directory: subject.directory.clone(),
        base: subject.base.clone(),
        applied_at: installation.now(),
        state: State::Applying,
        form: Form::Files { files: files.clone(), made: made.clone() },
    };
    journal.write(&record).map_err(ApplyError::Record)?;
    if let Err((path, cause)) = write_all(&work, run, &files) {
        let state = match undo::take_back(&journal, &mut record) {
            Ok(()) => "everything is as it was",
            Err(_) => "the change is not complete: `herma apply --undo` takes back the rest",
        };
        return Err(ApplyError::Write { path, cause, state });
    }
    record.state = State::Applied;
    journal.write(&record).map_err(ApplyError::Record)?;
    Ok(record)
}

/// Holds the lock of landings. A run of stage 5 that started meanwhile is found as well.
pub(crate) fn exclude_landings(
    installation: &Installation,
    subject: &Subject,
) -> Result<std::fs::File, ApplyError> {
    let lock = installation.home.try_lock_landing().map_err(ApplyError::Record)?;
    let lock = lock.ok_or_else(|| ApplyError::Landing("a result is landing now".to_owned()))?;
    subject.may_be_changed(installation)?;
    // HEAD may have moved while the person read what is shown.
    let base = base_check::unmoved_base(installation, &subject.report, &subject.directory)?;
    if base == subject.base {
        return Ok(lock);
    }
    let (run, directory) = (subject.report.run_id, subject.directory.clone());
    Err(ApplyError::BaseMoved { run, directory, head: base })
}

/// herma's own git directory with the patch applied to the base: the base tree and the resulting one, which is the one that the
/// signed report names.
pub(crate) fn patched(
    subject: &Subject,
    source: &SourceRepo,
    dir: &Path,
) -> Result<(GitDir, String, String), ApplyError> {
    let (git_dir, baseline) = source.make_git_dir(dir)?;
    let tree = git_dir.tree_with_patch(&baseline.tree, &subject.patch)?;
    if subject.report.result_tree.as_ref() != Some(&tree) {
        let why = "the patch does not result in the tree that the report names".to_owned();
        return Err(ApplyError::NotAPass { run: subject.report.run_id, why });
    }
    Ok((git_dir, baseline.tree, tree))
}

/// The differences of two trees. Deletions come first, because a file may become a directory; then a directory may become a file.
fn changes(before: &[TreeEntry], after: &[TreeEntry]) -> Vec<FileChange> {
    let map = |entries: &[TreeEntry]| -> BTreeMap<RepoPath, Entry> {
        entries.iter().map(|there| (there.path.clone(), there.entry.clone())).collect()
    };
    let (before, after) = (map(before), map(after));
    let paths: BTreeSet<&RepoPath> = before.keys().chain(after.keys()).collect();
    let state = |entry: Option<&Entry>| {
        entry.map(|entry| FileState { mode: entry.mode, id: entry.id.clone(), permissions: None })
    };
    let differing = paths.into_iter().filter(|path| before.get(path) != after.get(path));
    let mut files: Vec<FileChange> = differing
        .map(|path| FileChange {
            path: path.clone(),
            before: state(before.get(path)),
            after: state(after.get(path)),
        })
        .collect();
    files.sort_by_key(|file| file.after.is_some());
    files
}

/// Writes every content, before and after, into a file named by its blob id.
fn save(git_dir: &GitDir, files: &[FileChange], contents: &Path) -> Result<(), ApplyError> {
    let states = files.iter().flat_map(|file| [file.before.as_ref(), file.after.as_ref()]).flatten();
    let states: Vec<&FileState> = states.collect();
    if let Some(file) = states.iter().find(|state| state.mode == Mode::Submodule) {
        let cause = std::io::Error::other(format!("the patch changes a submodule ({})", file.id));
        return Err(ApplyError::Record(cause));
    }
    let ids: BTreeSet<&String> = states.into_iter().map(|state| &state.id).collect();
    let entry = |id: &String| {
        let entry = Entry { mode: Mode::File, id: id.clone() };
        RepoPath::new(id.as_bytes()).map(|path| TreeEntry { path, entry })
    };
    let entries: Vec<TreeEntry> = ids.into_iter().filter_map(entry).collect();
    lay_out(git_dir, &entries, &[contents])?;
    for saved in &entries {
        check(git_dir.format(), &contents.join(&saved.entry.id), &saved.entry.id)?;
    }
    Ok(())
}

fn check(format: ObjectFormat, file: &Path, id: &str) -> Result<(), ApplyError> {
    let hashed = std::fs::File::open(file).and_then(|open| {
        let size = open.metadata()?.len();
        herma_git::blob_id(format, size, open)
    });
    match hashed {
        Ok(hashed) if hashed == id => Ok(()),
        Ok(_) => Err(GitError::Unexpected {
            command: "cat-file",
            answer: format!("the content of {id} is another one"),
        }
        .into()),
        Err(error) => Err(ApplyError::Record(error)),
    }
}

/// A changed file keeps its permissions, but for those to execute where the patch changes these. It gets no setuid, setgid or sticky bit:
/// the person gave them to the content before.
fn keep_permissions(work: &WorkTree, files: &mut [FileChange]) -> std::io::Result<()> {
    for file in files {
        let Found::File(found) = work.state(&file.path)? else { continue };
        let Some(before) = &mut file.before else { continue };
        before.permissions = found.permissions;
        if let (Some(after), Some(permissions)) = (&mut file.after, found.permissions) {
            after.permissions = match after.mode {
                Mode::File => Some(permissions & 0o666),
                // Execution is allowed to those who may read.
                Mode::Executable => Some((permissions | (permissions & 0o444) >> 2) & 0o777),
                Mode::Symlink | Mode::Submodule => None,
            };
        }
    }
    Ok(())
}

/// The directories that the new files need and that do not exist, the outermost first.
fn new_directories(work: &WorkTree, files: &[FileChange]) -> std::io::Result<Vec<RepoPath>> {
    let mut made = BTreeSet::new();
    for file in files.iter().filter(|file| file.before.is_none()) {
        let mut parent = file.path.parent();
        while let Some(directory) = parent {
            if work.state(&directory)? != Found::Directory {
                made.insert(directory.clone());
            }
            parent = directory.parent();
        }
    }
    Ok(made.into_iter().collect())
}

/// Brings every file to its new state.
fn write_all(work: &WorkTree, run: RunId, files: &[FileChange]) -> Result<(), (RepoPath, std::io::Error)> {
    for (at, file) in files.iter().enumerate() {
        let failed = |cause| (file.path.clone(), cause);
        let states = (file.before.as_ref(), file.after.as_ref());
        bring(work, &file.path, &aside(run, at), states).map_err(failed)?;
    }
    Ok(())
}
