//! Whether an environment may be built again for a patch: only where no fetch command can run code of the patch, since fetch
//! commands have network.

use herma_core::RepoPath;
use herma_core::environment::EnvironmentDefinition;

/// Manifests and lock files that the package managers below only read. Others can name or hold programs, such as `.yarnrc.yml`,
/// `Gemfile`, `setup.py` or `build.gradle`.
const DATA_FILES: [&str; 7] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "Cargo.toml",
    "Cargo.lock",
    "go.mod",
    "go.sum",
];

/// The start of a fetch command that runs no code of the tree, and an option that it must have for that.
struct SafeFetch {
    words: &'static [&'static str],
    needs: Option<&'static str>,
}

const IGNORE_SCRIPTS: Option<&str> = Some("--ignore-scripts");

/// pnpm is not among them: `package.json` names config dependencies, whose hooks it runs, and the version of pnpm itself. Nor is
/// yarn, which installs a git dependency with its scripts. npm does neither as long as it has no git ([`crate::build`] takes it away).
const SAFE_FETCHES: [SafeFetch; 5] = [
    SafeFetch { words: &["npm", "ci"], needs: IGNORE_SCRIPTS },
    SafeFetch { words: &["npm", "install"], needs: IGNORE_SCRIPTS },
    SafeFetch { words: &["cargo", "fetch"], needs: None },
    SafeFetch { words: &["cargo", "vendor"], needs: None },
    SafeFetch { words: &["go", "mod", "download"], needs: None },
];

/// Why an environment of this definition is not built again for a patch that changes these inputs; `None` if it may be.
#[must_use]
pub fn refusal(definition: &EnvironmentDefinition, changed: &[RepoPath]) -> Option<String> {
    if !definition.rebuild {
        return Some("`rebuild: true` in the contract's environment would build it again".to_owned());
    }
    let is_data = |path: &&RepoPath| DATA_FILES.iter().any(|name| path.name() == name.as_bytes());
    if let Some(path) = changed.iter().find(|path| !is_data(path)) {
        return Some(format!(
            "only for manifests and lock files that are data is it built again, and {} can hold programs",
            path.shortened()
        ));
    }
    // Names of variables are compared as npm does.
    let is_npms = |name: &&String| name.to_ascii_lowercase().starts_with("npm_config_");
    if let Some(name) = definition.env.keys().find(is_npms) {
        return Some(format!("`env` sets `{name}`, and with another setting npm can run code of the patch"));
    }
    let unsafe_fetch = definition.fetch.iter().find(|command| !is_safe(command))?;
    Some(format!(
        "`{unsafe_fetch}` could run code of the patch with network; `rebuild` permits `npm ci --ignore-scripts` and the like"
    ))
}

/// Whether a command is one of the table, with plain words for options.
fn is_safe(command: &str) -> bool {
    let is_plain = |word: &str| {
        word.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=' | b'.' | b'/' | b':' | b'@'))
    };
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let is_listed = |safe: &SafeFetch| {
        let has_option = safe.needs.is_none_or(|option| words.contains(&option));
        words.starts_with(safe.words)
            && has_option
            && words[safe.words.len()..]
                .iter()
                .all(|word| word.starts_with('-') && !word.starts_with("--config"))
    };
    !command.contains('\n') && words.iter().all(|word| is_plain(word)) && SAFE_FETCHES.iter().any(is_listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(fetch: &str, changed: &str) -> bool {
        let definition = EnvironmentDefinition {
            fetch: vec![fetch.to_owned()],
            rebuild: true,
            ..EnvironmentDefinition::default()
        };
        refusal(&definition, &[RepoPath::new(changed).unwrap()]).is_some()
    }

    #[test]
    fn only_data_is_fetched_for_and_only_by_commands_that_run_none_of_it() {
        assert!(!refused("npm ci --ignore-scripts --no-audit", "package-lock.json"));
        assert!(!refused("cargo fetch --locked", "sub/Cargo.toml"));
        assert!(!refused("go mod download", "go.sum"));
        for fetch in [
            "npm ci",
            "npm ci --ignore-scripts && sh fetch.sh",
            "npm ci --ignore-scripts; sh fetch.sh",
            "npm ci --ignore-scripts\nsh fetch.sh",
            "npm ci --ignore-scripts $(sh fetch.sh)",
            "npm install ./tool --ignore-scripts",
            "cargo fetch --config ./evil.toml",
            "cargo fetch --config=./evil.toml",
            "make fetch",
            "pip download -r requirements.txt",
            "pnpm install --ignore-scripts",
            "pnpm fetch --ignore-scripts",
            "yarn install --ignore-scripts",
            "sh -c true",
        ] {
            assert!(refused(fetch, "package.json"), "{fetch}");
        }
        for changed in [
            "build.rs",
            ".yarnrc.yml",
            "yarn.lock",
            "pnpm-lock.yaml",
            "setup.py",
            "pyproject.toml",
            "build.gradle",
            "fetch.sh",
            "Gemfile",
        ] {
            assert!(refused("npm ci --ignore-scripts", changed), "{changed}");
        }
        let with_git = EnvironmentDefinition {
            fetch: vec!["npm ci --ignore-scripts".to_owned()],
            env: [("NPM_CONFIG_GIT".to_owned(), "git".to_owned())].into(),
            rebuild: true,
            ..EnvironmentDefinition::default()
        };
        assert!(refusal(&with_git, &[RepoPath::new("package.json").unwrap()]).is_some());
        let without = EnvironmentDefinition::default();
        assert!(refusal(&without, &[RepoPath::new("go.mod").unwrap()]).is_some());
    }
}
