//! Links between commits that git ignores by configuration. A commit that depends on a pack by such a link still
//! depends on it.

use crate::error::GitError;
use crate::git_dir::is_id;
use crate::source::SourceRepo;

impl SourceRepo {
    /// Whether the repository has grafts. herma's git ignores them, the owner's does not.
    pub(super) fn has_grafts(&self) -> bool {
        std::fs::symlink_metadata(self.common_dir.join("info/grafts")).is_ok()
    }

    /// The real parents of the commits at which a shallow history ends, whether they exist here or not.
    pub(super) fn cut_off_parents(&self) -> Result<Vec<String>, GitError> {
        let file = self.common_dir.join("shallow");
        let ends = match std::fs::read_to_string(&file) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(GitError::file("read", file))?,
        };
        let ends: String = ends.lines().filter(|id| is_id(id)).flat_map(|id| [id, "\n"]).collect();
        if ends.is_empty() {
            return Ok(Vec::new());
        }
        let commits = self.reading(["cat-file", "--batch"]).stdin(ends).checked()?.stdout;
        // A line of a commit message that looks the same adds a harmless extra check.
        let parents = commits.split(|b| *b == b'\n').filter_map(|line| line.strip_prefix(b"parent "));
        Ok(parents
            .filter_map(|id| std::str::from_utf8(id).ok())
            .filter(|id| is_id(id))
            .map(str::to_owned)
            .collect())
    }
}
