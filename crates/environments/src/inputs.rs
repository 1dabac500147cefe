//! The inputs of an environment: the files of the base that decide what is fetched, with their digests.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use herma_core::environment::{CachePattern, EnvironmentDefinition, Registry};
use herma_core::report::Mode;
use herma_core::{Digest, RepoPath};
use herma_git::{GitDir, GitError, TreeEntry, lay_out};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};

use crate::file_digest::digest_of_file;

/// The manifests and lock files of each registry's package managers.
const DEFAULT_INPUTS: &[(Registry, &[&str])] = &[
    (
        Registry::Npm,
        &[
            "**/package.json",
            "**/package-lock.json",
            "**/npm-shrinkwrap.json",
            "**/yarn.lock",
            "**/pnpm-lock.yaml",
            "pnpm-workspace.yaml",
            "bun.lock",
            "bun.lockb",
            ".yarnrc.yml",
            ".nvmrc",
        ],
    ),
    (
        Registry::Pypi,
        &[
            "pyproject.toml",
            "setup.cfg",
            "requirements*.txt",
            "requirements/**",
            "**/requirements*.txt",
            "poetry.lock",
            "uv.lock",
            "pdm.lock",
            "Pipfile",
            "Pipfile.lock",
            "tox.ini",
            ".python-version",
        ],
    ),
    (Registry::Crates, &["**/Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml"]),
    (Registry::Go, &["**/go.mod", "**/go.sum", "go.work", "go.work.sum"]),
    (
        Registry::Maven,
        &[
            "**/pom.xml",
            ".mvn/**",
            "**/build.gradle",
            "**/build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradle.properties",
            "gradle/**",
        ],
    ),
    (Registry::Rubygems, &["Gemfile", "Gemfile.lock", "*.gemspec", ".ruby-version"]),
    (Registry::Packagist, &["composer.json", "composer.lock"]),
    (
        Registry::Nuget,
        &["**/*.csproj", "**/*.fsproj", "**/packages.lock.json", "Directory.*.props", "*.sln", "global.json"],
    ),
    (Registry::Debian, &["debian/control"]),
];

/// One input and the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputDigest {
    /// Its path.
    pub path: RepoPath,
    /// Its mode, as git writes it.
    pub mode: String,
    /// The digest of its content; of a link, the digest of its target.
    pub digest: Digest,
}

/// Patterns that match paths from the repository's root.
#[derive(Debug)]
pub(crate) struct RootPatterns(Gitignore);

impl RootPatterns {
    /// Patterns that were checked when the definition was parsed; one that the matcher refuses matches nothing.
    pub(crate) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut builder = GitignoreBuilder::new("/");
        for pattern in patterns {
            let anchored =
                if pattern.starts_with("**/") { pattern.to_owned() } else { format!("/{pattern}") };
            let _ = builder.add_line(None, &anchored);
        }
        Self(builder.build().unwrap_or_else(|_| Gitignore::empty()))
    }

    /// Whether a file matches, by itself or by a directory above it.
    pub(crate) fn matches(&self, path: &RepoPath) -> bool {
        let path = Path::new("/").join(OsStr::from_bytes(path.as_bytes()));
        self.0.matched_path_or_any_parents(path, false).is_ignore()
    }
}

/// The inputs of a definition among the entries of the base: those that it names, else the manifests of its registries.
#[must_use]
pub fn select(entries: &[TreeEntry], definition: &EnvironmentDefinition) -> Vec<TreeEntry> {
    let patterns = match &definition.inputs {
        Some(named) => RootPatterns::new(named.iter().map(herma_core::environment::InputPattern::as_str)),
        None => RootPatterns::new(default_patterns(&definition.registries)),
    };
    let is_file = |entry: &&TreeEntry| entry.entry.mode != Mode::Submodule;
    entries.iter().filter(is_file).filter(|entry| patterns.matches(&entry.path)).cloned().collect()
}

/// The files of the base that decide which paths git ignores.
#[must_use]
pub fn ignore_rules(entries: &[TreeEntry]) -> Vec<TreeEntry> {
    entries.iter().filter(|entry| entry.path.name() == b".gitignore").cloned().collect()
}

fn default_patterns(registries: &[Registry]) -> impl Iterator<Item = &'static str> + '_ {
    let of = |registry: &Registry| DEFAULT_INPUTS.iter().find(|(known, _)| known == registry);
    registries.iter().filter_map(of).flat_map(|(_, patterns)| patterns.iter().copied())
}

/// Writes the inputs below `root` from the objects of the base, and takes their digests there. The work tree of the target is
/// not read.
pub fn lay_out_inputs(
    git_dir: &GitDir,
    inputs: &[TreeEntry],
    root: &Path,
) -> Result<Vec<InputDigest>, GitError> {
    lay_out(git_dir, inputs, &[root])?;
    inputs
        .iter()
        .map(|input| {
            let path = root.join(OsStr::from_bytes(input.path.as_bytes()));
            let failed = |cause| GitError::File { doing: "read", path: path.clone(), cause };
            let digest = if input.entry.mode == Mode::Symlink {
                std::fs::read_link(&path).map(|target| Digest::of(target.as_os_str().as_bytes()))
            } else {
                digest_of_file(&path)
            };
            let mode = input.entry.mode.as_str().to_owned();
            Ok(InputDigest { path: input.path.clone(), mode, digest: digest.map_err(failed)? })
        })
        .collect()
}

/// The paths among these that belong to the environment by its `cache`.
pub fn cached<'a>(
    definition: &EnvironmentDefinition,
    paths: &'a [RepoPath],
) -> impl Iterator<Item = &'a RepoPath> + use<'a> {
    let patterns = RootPatterns::new(definition.cache.iter().map(CachePattern::as_str));
    paths.iter().filter(move |path| patterns.matches(path))
}
