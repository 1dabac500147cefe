//! Applies a patch to a tree with resource limits: a few bytes of a patch can expand to gigabytes.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use herma_destination::tool::{CallLimits, ToolError};

use crate::error::GitError;
use crate::git_dir::{GitDir, one_id};

/// The memory that git may use for a small patch, and for each byte of a larger one.
const MEMORY_BYTES: u64 = 128 << 20;
const MEMORY_PER_BYTE: u64 = 6;
/// The CPU time that git may use for a small patch, and how many bytes more earn it another second.
const CPU_SECONDS: u64 = 2;
const BYTES_PER_SECOND: u64 = 4 << 20;
/// The largest object that git may write.
const FILE_BYTES: u64 = 1 << 30;

impl GitDir {
    /// The tree that results from a patch on `tree`, computed in a separate index. A patch that costs far more than
    /// its size suggests fails with [`GitError::TooCostly`].
    pub fn tree_with_patch(&self, tree: &str, patch: &Path) -> Result<String, GitError> {
        let index = self.dir().join("herma-index");
        let call =
            |args: &[&str]| self.git().call(self.dir(), args.iter().copied()).env("GIT_INDEX_FILE", &index);
        call(&["read-tree", tree]).checked()?;
        let mut file = File::open(patch).map_err(GitError::file("read", patch))?;
        let size = file.metadata().map_err(GitError::file("read", patch))?.len();
        if size > 0 {
            let limits = limits(size);
            // Objects are written only to compute the tree id: compressing them would take most of the time.
            let apply = [
                "-c",
                "core.looseCompression=0",
                "apply",
                "--cached",
                "--binary",
                "--whitespace=nowarn",
                "-",
            ];
            let mut running = call(&apply).spawn()?;
            // git waits for the patch, so that nothing runs before the limits are set.
            running.limit(limits)?;
            let mut stdin = running.take_stdin().ok_or_else(|| GitError::unexpected("apply", b"no stdin"))?;
            // If git exits before it has read everything, its exit status tells why.
            let _ = io::copy(&mut file, &mut stdin).and_then(|_| stdin.flush());
            drop(stdin);
            running.finish().map_err(|error| explain(error, limits))?;
        }
        one_id("write-tree", &call(&["write-tree"]).checked()?.stdout)
    }
}

fn limits(patch_bytes: u64) -> CallLimits {
    CallLimits {
        cpu_seconds: CPU_SECONDS + patch_bytes / BYTES_PER_SECOND,
        memory_bytes: MEMORY_BYTES + patch_bytes.saturating_mul(MEMORY_PER_BYTE),
        file_bytes: FILE_BYTES,
    }
}

/// Tells a patch that does not apply from one that exceeds a limit.
fn explain(error: ToolError, limits: CallLimits) -> GitError {
    match &error {
        ToolError::Failed { status, said, .. }
            if status.signal().is_some()
                || ["memory", "malloc", "mmap"].iter().any(|word| said.contains(word)) =>
        {
            GitError::TooCostly { cpu_seconds: limits.cpu_seconds, memory_mib: limits.memory_bytes >> 20 }
        }
        _ => error.into(),
    }
}
