//! One small file of a repository's base, read from the object store: the work tree is not looked at.

use crate::error::GitError;
use crate::git_dir::is_id;
use crate::source::SourceRepo;

impl SourceRepo {
    /// The content of a regular file of the base; none if there is no regular file of that path.
    pub fn file_at_base(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, GitError> {
        let listed = self.git.call_in(&self.root, ["ls-tree", "-z", "-l", &self.base_tree, "--", path]);
        let listed = listed.checked()?.stdout;
        let Some(head) = listed.split(|b| *b == b'\t').next().filter(|head| !head.is_empty()) else {
            return Ok(None);
        };
        // `<mode> blob <id> <size>`
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.split_ascii_whitespace().collect();
        let ["100644" | "100755", "blob", id, size] = words[..] else { return Ok(None) };
        let size: u64 = size.parse().map_err(|_| GitError::unexpected("ls-tree", head.as_bytes()))?;
        if !is_id(id) {
            return Err(GitError::unexpected("ls-tree", head.as_bytes()));
        }
        if size > max_bytes {
            return Err(GitError::TooLarge { path: path.to_owned(), bytes: size, max_bytes });
        }
        Ok(Some(self.git.call_in(&self.root, ["cat-file", "blob", id]).checked()?.stdout))
    }
}
