//! Where the real projects come from: the registries, by the tools and the configuration of the person who runs the tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::console::run_command;
use crate::kit::Herma;

/// A release of a project that contains its tests.
pub(super) enum Source {
    /// A source distribution, by its requirement.
    Pypi(&'static str),
    /// A published crate: name and version.
    Crate(&'static str, &'static str),
    /// A Go module: path and version.
    GoModule(&'static str, &'static str),
    /// A Debian source package.
    Debian(&'static str),
}

impl Source {
    /// The shell command that leaves the release in a new directory of this name.
    fn command(&self, name: &str) -> String {
        let unpack =
            |archive: &str| format!("mkdir {name} && tar -xf {archive} -C {name} --strip-components=1");
        match self {
            Self::Pypi(requirement) => format!(
                "python3 -m pip download -q --no-deps --no-binary :all: {requirement} && {}",
                unpack("*.tar.gz")
            ),
            Self::Crate(package, version) => format!(
                "cargo new -q --lib --vcs none user && cd user && cargo add -q {package}@={version} && \
                 cargo vendor -q --versioned-dirs > /dev/null && mv vendor/{package}-{version} ../{name} && \
                 cd ../{name} && rm -f Cargo.toml.orig .cargo_vcs_info.json .cargo-checksum.json .cargo-ok"
            ),
            Self::GoModule(path, version) => format!(
                "GOFLAGS=-modcacherw GOMODCACHE=$PWD/modules go mod download {path}@{version} && \
                 mv modules/{path}@{version} {name}"
            ),
            Self::Debian(package) => format!(
                "apt-get -qq source --download-only --tar-only {package} && {}",
                unpack(&format!("{package}_*.orig.tar.*"))
            ),
        }
    }

    /// Puts the release into a new repository of this name, in one commit.
    pub(super) fn import(&self, name: &str, dir: &Path, person: &BTreeMap<OsString, OsString>) {
        let commit = "git init -q -b main && git add -A -f && git commit -q -m import";
        for (command, at) in [(self.command(name), dir.to_owned()), (commit.to_owned(), dir.join(name))] {
            let (output, code) = run_command(&command, &at, person);
            assert_eq!(code, 0, "{command}: {output}");
        }
    }
}

/// The environment of the person who runs the tests, in which apt also knows source packages, and herma has this home.
pub(in super::super) fn person(herma: &Herma) -> BTreeMap<OsString, OsString> {
    #[allow(
        clippy::disallowed_methods,
        reason = "registries and tools are those of the person who runs the tests"
    )]
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let apt = herma.at("apt");
    let config = apt.join("apt.conf");
    variables.insert("APT_CONFIG".into(), config.clone().into());
    variables.insert("HERMA_HOME".into(), herma.home().into());
    if !config.exists() {
        for part in ["parts", "lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(part)).unwrap();
        }
        let sources = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap();
        fs::write(apt.join("parts/debian.sources"), sources.replace("Types: deb\n", "Types: deb-src\n"))
            .unwrap();
        let at = |part: &str| apt.join(part).display().to_string();
        let text = format!(
            "Dir::Etc::SourceList \"/dev/null\";\nDir::Etc::SourceParts \"{}\";\nDir::State::Lists \"{}\";\n\
             Dir::Cache \"{}\";\nAPT::Sandbox::User \"root\";\n",
            at("parts"),
            at("lists"),
            at("cache")
        );
        fs::write(&config, text).unwrap();
        let (output, code) = run_command("apt-get -qq update", &apt, &variables);
        assert_eq!(code, 0, "{output}");
    }
    variables
}
