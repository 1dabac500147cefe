//! Submodules that the target has checked out, clean, at the commit that the base records: herma reads their files from their own
//! objects.

use herma_core::content::{MissingContent, MissingReason};
use herma_core::report::Mode;

use super::{inside, make_dir, missing};
use crate::error::GitError;
use crate::git_dir::{CheckoutContent, GitDir, Submodule};
use crate::object::ObjectFormat;
use crate::source::SourceRepo;
use crate::tree_entry::TreeEntry;

/// Finds the submodules of the base, and those inside them.
pub(super) fn read(
    source: &SourceRepo,
    git_dir: &GitDir,
    entries: &[TreeEntry],
    content: &mut CheckoutContent,
    lacking: &mut Vec<MissingContent>,
) -> Result<(), GitError> {
    for (at, entry) in entries.iter().filter(|entry| entry.entry.mode == Mode::Submodule).enumerate() {
        match find(source, entry) {
            Err(reason) => lacking.push(missing(&entry.path, reason)),
            Ok(submodule) => {
                let dir = make_dir(git_dir, &format!("submodules/{at}"))?;
                let objects = submodule.common_dir.join("objects");
                let own = GitDir::create(git_dir.git(), &dir, git_dir.format(), Some(&objects))?;
                let entries = own.entries(&submodule.base_tree)?;
                let (own, inner) = submodule.with_content(own, &entries)?;
                let commit = submodule.base_commit.clone();
                content.submodules.insert(entry.path.clone(), Submodule { commit, git_dir: own, entries });
                let outer = inner.into_iter().filter_map(|inner| {
                    Some(MissingContent { path: inside(&entry.path, &inner.path)?, ..inner })
                });
                lacking.extend(outer);
            }
        }
    }
    Ok(())
}

/// The submodule at this entry, or why its files cannot be used.
fn find(source: &SourceRepo, entry: &TreeEntry) -> Result<SourceRepo, MissingReason> {
    let absent = MissingReason::SubmoduleNotCheckedOut;
    let name = entry.path.to_string();
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(entry.path.as_bytes());
    let root = source.root().join(path);
    // A link could lead to any repository.
    if root.canonicalize().map_err(|_| absent)? != root || root.join(".git").symlink_metadata().is_err() {
        return Err(absent);
    }
    let checked_out = SourceRepo::open(&source.git, &root, &name, None).map_err(|_| absent)?;
    let wanted = &entry.entry.id;
    if checked_out.base_commit != *wanted {
        return Err(MissingReason::SubmoduleAtOtherCommit);
    }
    if ObjectFormat::of_id(wanted) != ObjectFormat::of_id(&source.base_commit) {
        return Err(absent);
    }
    match checked_out.status() {
        Ok(status) if status.is_empty() => Ok(checked_out),
        Ok(_) => Err(MissingReason::SubmoduleChanged),
        Err(_) => Err(absent),
    }
}
