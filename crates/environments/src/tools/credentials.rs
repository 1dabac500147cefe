//! Files and directories that may hold credentials. Nothing that holds one, or is inside one, is mounted.

use std::path::{Path, PathBuf};

use herma_destination::Mount;

/// Below the operator's home.
pub const CREDENTIAL_PATHS: &[&str] = &[
    ".aws",
    ".azure",
    ".bundle",
    ".bunfig.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".config/composer",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/go",
    ".config/pip",
    ".config/pypoetry",
    ".config/uv",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gitconfig",
    ".gnupg",
    ".gradle",
    ".kube",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".netrc",
    ".npmrc",
    ".nuget",
    ".pip",
    ".pypirc",
    ".ssh",
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
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let host = real(&mount.host);
    for home in [home.to_owned(), real(home)] {
        if home.starts_with(&host) {
            return Some(home);
        }
        let paths = CREDENTIAL_PATHS.iter().map(|path| home.join(path));
        let shown = paths.into_iter().find(|path| path.starts_with(&host) || host.starts_with(path));
        if shown.is_some() {
            return shown;
        }
    }
    beside(&host, 2)
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
