//! The baseline commit of a built-in fixture.

use herma_core::RepoPath;
use herma_fixtures::Fixture;
use herma_git::{Baseline, GitDir, GitError, NewFile};

/// Records a fixture as one parentless commit.
pub fn import_fixture(git_dir: &GitDir, fixture: &Fixture) -> Result<Baseline, GitError> {
    let paths: Vec<RepoPath> = fixture.files.iter().filter_map(|file| RepoPath::new(file.path)).collect();
    let files: Vec<NewFile<'_>> = paths
        .iter()
        .zip(fixture.files)
        .map(|(path, file)| NewFile { path, mode: file.mode, content: file.bytes })
        .collect();
    git_dir.import(&files)
}
