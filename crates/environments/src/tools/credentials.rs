//! Files and directories that may hold credentials. Nothing that holds one, or is inside one, is mounted.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use herma_destination::Mount;

/// Below the operator's home: files and directories of package managers, clouds, agents, password managers and herma itself.
pub const CREDENTIAL_PATHS: &[&str] = &[
    ".aws",
    ".azure",
    ".bundle",
    ".bunfig.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".codex",
    ".composer/auth.json",
    ".config/NuGet",
    ".config/composer",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/github-copilot",
    ".config/go",
    ".config/helm",
    ".config/op",
    ".config/opencode",
    ".config/pip",
    ".config/pypoetry",
    ".config/rclone",
    ".config/uv",
    ".copilot",
    ".cursor",
    ".docker",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gitconfig",
    ".gnupg",
    ".gradle",
    ".herma",
    ".kube",
    ".local/share/herma",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/opencode",
    ".local/state/herma",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".nuget",
    ".password-store",
    ".pgpass",
    ".pip",
    ".pypirc",
    ".ssh",
    ".terraform.d",
    ".vault-token",
    ".yarnrc",
    ".yarnrc.yml",
];

/// File names that hold credentials wherever they are.
const CREDENTIAL_NAMES: &[&str] = &[
    ".netrc",
    ".npmrc",
    ".pypirc",
    "auth.json",
    "credentials",
    "credentials.toml",
    "npmrc",
    "pip.conf",
    "settings.xml",
];

/// The path of credentials that a mount would show, if there is one. A mount of a directory is looked at two levels deep for
/// configuration files of package managers.
#[must_use]
pub fn exposes_credentials(mount: &Mount, home: &Path) -> Option<PathBuf> {
    exposes_any(mount, home, &[])
}

/// The same for a home and other paths that are never mounted.
pub(super) fn exposes_any(mount: &Mount, home: &Path, refused: &[PathBuf]) -> Option<PathBuf> {
    let shown = with_target(&mount.host);
    if let Some(home) =
        with_target(home).into_iter().find(|home| shown.iter().any(|host| home.starts_with(host)))
    {
        return Some(home);
    }
    let known = CREDENTIAL_PATHS.iter().map(|path| home.join(path)).chain(refused.iter().cloned());
    // Either side can be a link: the operator may keep `~/.ssh` elsewhere.
    let meets = |path: &PathBuf| shown.iter().any(|host| path.starts_with(host) || host.starts_with(path));
    known.flat_map(|path| with_target(&path)).find(meets).or_else(|| beside(&real(&mount.host), 2))
}

/// A path, and the path that it leads to through links above it or at its end.
fn with_target(path: &Path) -> [PathBuf; 2] {
    [path.to_owned(), real(path)]
}

/// The path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return missing.into_iter().rev().fold(real, |path, name| path.join::<&OsStr>(name));
        }
        missing.extend(ancestor.file_name());
    }
    path.to_owned()
}

fn beside(dir: &Path, depth: usize) -> Option<PathBuf> {
    let is_named = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| CREDENTIAL_NAMES.contains(&name))
    };
    if dir.is_file() {
        return is_named(dir).then(|| dir.to_owned());
    }
    let entries: Vec<_> = std::fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.iter().find_map(|entry| {
        let (path, kind) = (entry.path(), entry.file_type().ok()?);
        match (kind.is_dir(), depth) {
            (true, 1..) => beside(&path, depth - 1),
            (true, _) => None,
            (false, _) => is_named(&path).then_some(path),
        }
    })
}
