//! Checks which objects of a landing's pack the target also has elsewhere.

use std::path::{Path, PathBuf};

use super::pack::Pack;
use super::pack_index::PackIndex;
use crate::error::GitError;
use crate::object::ObjectFormat;
use crate::source::SourceRepo;

impl SourceRepo {
    /// The `ids` that only `pack` has.
    pub(super) fn only_in(&self, pack: &Pack<'_>, ids: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, GitError> {
        let objects = self.common_dir.join("objects");
        let mut left: Vec<Vec<u8>> = ids.into_iter().filter(|id| !is_loose(&objects, id)).collect();
        for index in other_packs(pack)? {
            let Some(index) = PackIndex::open(&index, ObjectFormat::of_id(&self.base_commit))? else {
                continue;
            };
            let mut rest = Vec::new();
            for id in left {
                if !index.has(&id).map_err(GitError::file("read", pack.dir))? {
                    rest.push(id);
                }
            }
            left = rest;
        }
        for store in borrowed_from(&objects) {
            left = self.missing_in(&store, left)?;
        }
        Ok(left)
    }

    /// The `ids` that an alternate object store of the target lacks.
    fn missing_in(&self, store: &Path, ids: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, GitError> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let stdin: String = ids.iter().flat_map(|id| [hex::encode(id), "\n".to_owned()]).collect();
        let call = self.reading(["cat-file", "--batch-check=%(objecttype)"]);
        let output = call.env("GIT_OBJECT_DIRECTORY", store).stdin(stdin).checked()?;
        let answers = output.stdout.split(|b| *b == b'\n');
        Ok(ids
            .into_iter()
            .zip(answers)
            .filter(|(_, answer)| answer.ends_with(b" missing"))
            .map(|(id, _)| id)
            .collect())
    }
}

fn is_loose(objects: &Path, id: &[u8]) -> bool {
    let name = hex::encode(id);
    objects.join(&name[..2]).join(&name[2..]).exists()
}

/// The indexes of all other complete packs.
fn other_packs(pack: &Pack<'_>) -> Result<Vec<PathBuf>, GitError> {
    let fail = || GitError::file("list", pack.dir);
    let own = pack.file("idx");
    let mut indexes = Vec::new();
    for entry in std::fs::read_dir(pack.dir).map_err(fail())? {
        let path = entry.map_err(fail())?.path();
        if path.extension().is_some_and(|e| e == "idx") && path != own && path.with_extension("pack").exists()
        {
            indexes.push(path);
        }
    }
    Ok(indexes)
}

/// The alternate object stores of this one. A line in quotes is skipped: then the objects count as only ours, and
/// stay.
fn borrowed_from(objects: &Path) -> Vec<PathBuf> {
    let lines = std::fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
    let plain = |line: &&str| !line.is_empty() && !line.starts_with(['#', '"']);
    lines.lines().filter(plain).map(|line| objects.join(line)).collect()
}
