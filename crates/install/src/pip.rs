//! pip as the operator has it: by which interpreter, which index it asks, and whom it trusts there.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use herma_destination::{Mount, Tool, View};
use herma_engines::{Origin, PYTHON_PACKAGES};

use crate::error::InstallError;
use crate::fetcher::{Fetcher, host_of, shown, to_show};
use crate::host_tools::HostTools;
use crate::python::Python;

/// The script that runs pip and compiles the fetched modules.
const SCRIPT: &str = include_str!("pip.py");
/// Asks pip for its default index, the host of the index, and the host of its files.
const USUAL: &str =
    "from pip._internal.models.index import PyPI as i; print(i.simple_url, i.netloc, i.file_storage_domain)";

/// pip and its configuration.
#[derive(Debug)]
pub(crate) struct Pip {
    python: Python,
    path: Vec<PathBuf>,
    mounts: Vec<Mount>,
    index: String,
    /// The host of the index, and the one that has its files where that is another.
    hosts: Vec<String>,
    cert: Option<PathBuf>,
}

impl Pip {
    /// Finds an interpreter that has pip, and asks it for its configuration. Users and tokens in it are not passed on.
    pub(crate) fn find(host: &HostTools, pythons: &'static [&'static str]) -> Result<Self, InstallError> {
        let origin = Origin::PyPi { pythons };
        let python = Python::find(host, pythons).ok_or(InstallError::NoPython { pythons })?;
        let ask = |words: &[&str]| {
            let said = Tool::at("python3", python.starts.clone())
                .call()
                .arg("-I")
                .args(words.iter().copied())
                .env("PATH", &host.search_path)
                .env("HOME", &host.user_home)
                .checked()
                .map_err(|source| InstallError::Tool { origin, source })?;
            Ok::<_, InstallError>(String::from_utf8_lossy(&said.stdout).into_owned())
        };
        let said = ask(&["-m", "pip", "--disable-pip-version-check", "config", "list"])?;
        // A pip that cannot print its default index needs one in its configuration.
        let usual = ask(&["-c", USUAL]).unwrap_or_default();
        let mut usual = usual.split_whitespace().map(ToOwned::to_owned);
        let index = value_of(&said, "index-url").or(usual.next()).unwrap_or_default();
        let host =
            host_of(&index).ok_or_else(|| InstallError::Registry { origin, registry: shown(&index) })?;
        let hosts = hosts(host, usual);
        let cert = value_of(&said, "cert").map(PathBuf::from);
        let mounts = to_show(python.prefixes.iter().cloned().chain(cert.clone()));
        let path = python.starts.parent().map(Path::to_owned).into_iter().collect();
        Ok(Self { python, path, mounts, index, hosts, cert })
    }
}

impl Fetcher for Pip {
    fn name(&self) -> &'static str {
        "pip"
    }

    fn path(&self) -> &[PathBuf] {
        &self.path
    }

    fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    fn hosts(&self) -> Vec<String> {
        self.hosts.clone()
    }

    fn lay_out(&self, workspace: &Path) -> io::Result<()> {
        self.python.copy(workspace)
    }

    fn argv(&self, view: &View, wanted: Vec<String>) -> Vec<OsString> {
        let mut argv = vec![self.python.starts.clone().into_os_string()];
        argv.extend(["-I", "-B", "-c", SCRIPT].map(Into::into));
        argv.push(view.workspace.clone().into_os_string());
        argv.extend(["install", "--target"].map(Into::into));
        argv.push(view.workspace.join(PYTHON_PACKAGES).into_os_string());
        // A source build would run code of a package that is not admitted yet.
        argv.extend(
            ["--only-binary", ":all:", "--no-compile", "--no-cache-dir", "--no-input", "--quiet"]
                .map(Into::into),
        );
        argv.extend(["--disable-pip-version-check", "--index-url", &self.index].map(Into::into));
        if let Some(cert) = &self.cert {
            argv.extend(["--cert".into(), cert.clone().into_os_string()]);
        }
        argv.extend(wanted.into_iter().map(Into::into));
        argv
    }

    fn env(&self, _: &View) -> Vec<(String, String)> {
        // No file of the machine configures it.
        vec![("PIP_CONFIG_FILE".to_owned(), "/dev/null".to_owned())]
    }
}

/// Where an index on this host has its files: the usual one on a host of their own, any other beside itself.
fn hosts(host: String, mut usual: impl Iterator<Item = String>) -> Vec<String> {
    let files = if usual.next().as_ref() == Some(&host) { usual.next() } else { None };
    std::iter::once(host).chain(files).collect()
}

/// The value of a key among lines of `section.key='value'`; the section of the command wins over that of all.
fn value_of(said: &str, key: &str) -> Option<String> {
    let in_section = |section: &str| {
        let prefix = format!("{section}.{key}=");
        let value = said.lines().find_map(|line| line.trim().strip_prefix(&prefix))?;
        let value = value.trim_matches(['\'', '"']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    in_section("install").or_else(|| in_section("global"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_index_has_its_files_elsewhere() {
        let usual = || ["index.example", "files.example"].map(ToOwned::to_owned).into_iter();
        assert_eq!(hosts("index.example".into(), usual()), ["index.example", "files.example"]);
        assert_eq!(hosts("own.example".into(), usual()), ["own.example"]);
    }

    #[test]
    fn a_key_has_a_value_or_none() {
        let said =
            "global.index-url='https://one.example/simple'\ninstall.cert=\"/etc/own.pem\"\nglobal.cert=''\n";
        assert_eq!(value_of(said, "index-url").as_deref(), Some("https://one.example/simple"));
        assert_eq!(value_of(said, "cert").as_deref(), Some("/etc/own.pem"));
        let both = format!("{said}install.index-url='https://two.example/simple'\n");
        assert_eq!(value_of(&both, "index-url").as_deref(), Some("https://two.example/simple"));
        for none in ["extra-index-url", "url", "no-such-key"] {
            assert_eq!(value_of(said, none), None, "{none}");
        }
        assert_eq!(value_of("global.cert=''\n", "cert"), None);
    }
}
