//! The operator's npm: its path, registry and certificates.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use herma_destination::{Mount, Tool, View};
use herma_engines::{Origin, Source};

use crate::error::InstallError;
use crate::fetcher::{Fetcher, host_of, shown, to_show};
use crate::host_tools::HostTools;

/// npm and its configuration.
#[derive(Debug)]
pub(crate) struct Npm {
    /// npm's own program.
    program: PathBuf,
    /// The directories that hold npm and node, for PATH.
    path: Vec<PathBuf>,
    /// The mounts that they need.
    mounts: Vec<Mount>,
    /// The registry's address.
    registry: String,
    /// Its host and port, as an egress rule.
    host: String,
    /// The CA file, if one is configured.
    cafile: Option<PathBuf>,
}

impl Npm {
    /// Finds npm and reads its configuration, without users and tokens.
    pub(crate) fn find(host: &HostTools, package: &Source<'_>) -> Result<Self, InstallError> {
        let search_path = &host.search_path;
        let untold = |source| InstallError::Tool { origin: Origin::Npm, source };
        let find = |name| Tool::find(name, search_path).map_err(untold);
        let (npm, node) = (find("npm")?, find("node")?);
        let scope = package.name.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
        let keys = ["registry", "cafile"].into_iter().chain(scope.as_deref());
        let output = npm
            .call()
            .args(["config", "get"])
            .args(keys)
            .env("PATH", search_path)
            .env("HOME", &host.user_home)
            .env("npm_config_update_notifier", "false")
            .env("npm_config_logs_max", "0")
            .checked()
            .map_err(untold)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let registry =
            scope.and_then(|scope| value_of(&said, &scope)).or_else(|| value_of(&said, "registry"));
        let registry = registry.unwrap_or_default();
        let host = host_of(&registry)
            .ok_or_else(|| InstallError::Registry { origin: Origin::Npm, registry: shown(&registry) })?;
        let cafile = value_of(&said, "cafile").map(PathBuf::from);
        let mut dirs: Vec<PathBuf> = Vec::new();
        for tool in [npm.path(), node.path()] {
            let real = std::fs::canonicalize(tool).unwrap_or_else(|_| tool.to_owned());
            for path in [tool, real.as_path()] {
                dirs.extend(path.parent().map(Path::to_owned));
            }
        }
        // An npm outside of the system directories has its libraries beside its bin directory.
        let homes = dirs.iter().filter_map(|dir| dir.parent()).map(Path::to_owned);
        let mounts = to_show(homes.chain(cafile.clone()));
        Ok(Self { program: npm.path().to_owned(), path: dirs, mounts, registry, host, cafile })
    }
}

impl Fetcher for Npm {
    fn name(&self) -> &'static str {
        "npm"
    }

    fn path(&self) -> &[PathBuf] {
        &self.path
    }

    fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    fn hosts(&self) -> Vec<String> {
        vec![self.host.clone()]
    }

    fn argv(&self, view: &View, wanted: Vec<String>) -> Vec<OsString> {
        let mut argv = vec![
            self.program.clone().into_os_string(),
            "install".into(),
            "--prefix".into(),
            view.workspace.clone().into_os_string(),
            // Install scripts do not run: the package is not admitted yet.
            "--ignore-scripts".into(),
            "--omit=dev".into(),
            "--no-audit".into(),
            "--no-fund".into(),
            "--loglevel=error".into(),
        ];
        argv.extend(wanted.into_iter().map(Into::into));
        argv
    }

    fn env(&self, view: &View) -> Vec<(String, String)> {
        let own = view.engine_dir.clone().unwrap_or_default();
        let mut env = vec![
            ("npm_config_registry".to_owned(), self.registry.clone()),
            ("npm_config_cache".to_owned(), own.join("cache").display().to_string()),
            ("npm_config_userconfig".to_owned(), own.join("npmrc").display().to_string()),
            ("npm_config_update_notifier".to_owned(), "false".to_owned()),
            // The same package is the same tree, whichever mirror it comes from.
            ("npm_config_omit_lockfile_registry_resolved".to_owned(), "true".to_owned()),
        ];
        let cafile = self.cafile.iter();
        env.extend(cafile.map(|file| ("npm_config_cafile".to_owned(), file.display().to_string())));
        env
    }
}

/// The value of a key among lines of `key=value`; none where npm has none.
fn value_of(said: &str, key: &str) -> Option<String> {
    let mut lines = said.lines().filter_map(|line| line.split_once('='));
    let (_, value) = lines.find(|(known, _)| known.trim() == key)?;
    let value = value.trim();
    (!matches!(value, "" | "undefined" | "null")).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_value_or_none() {
        let said = "registry=https://packages.example/?\n@some:registry=undefined\ncafile = null\n";
        assert_eq!(value_of(said, "registry").as_deref(), Some("https://packages.example/?"));
        for none in ["@some:registry", "cafile", "no-such-key"] {
            assert_eq!(value_of(said, none), None, "{none}");
        }
    }
}
