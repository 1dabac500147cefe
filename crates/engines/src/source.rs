//! The source of an agent's installation: a package that herma knows, or one that the operator names.

use std::fs;
use std::path::{Path, PathBuf};

use herma_files::{MAX_RECORD_BYTES, read_regular};
use serde::Deserialize;
use serde_json::Value;

use crate::origin::{Origin, PYTHON_PACKAGES};

/// The longest license that is taken from a package's metadata.
const MAX_LICENSE_BYTES: usize = 100;

/// A package to install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Which registry it comes from.
    pub origin: Origin,
    /// The name of the package.
    pub name: &'a str,
    /// The version that is installed by default.
    pub version: &'a str,
    /// Its license; for an unknown package, only its metadata states one.
    pub license: Option<&'a str>,
    /// The identity of its program, if known; `{}` stands for the version.
    pub identity: Option<&'a str>,
    /// The program that runs, below the root of the tree.
    pub program: &'a str,
    /// Further packages to fetch, with exact versions, in the registry's syntax.
    pub beside: Vec<&'a str>,
}

/// The fields of an npm package's metadata.
#[derive(Deserialize)]
struct Description {
    version: String,
    #[serde(default)]
    license: Value,
}

impl Source<'_> {
    /// Every package to fetch for a version, in the registry's syntax.
    #[must_use]
    pub fn wanted(&self, version: &str) -> Vec<String> {
        let own = self.origin.exactly(self.name, version);
        std::iter::once(own).chain(self.beside.iter().map(|beside| (*beside).to_owned())).collect()
    }

    /// The version that is installed in a tree; `None` if it is unreadable.
    #[must_use]
    pub fn installed(&self, tree: &Path) -> Option<String> {
        let version = match self.origin {
            Origin::Npm => self.described_by_npm(tree)?.version,
            Origin::PyPi { .. } => field(&self.described_by_python(tree)?, "Version")?.to_owned(),
        };
        let sound = (1..=64).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_graphic());
        sound.then_some(version)
    }

    /// Its license: the known one, else the one in the metadata of this tree, if it is a license name.
    #[must_use]
    pub fn license_of(&self, tree: &Path) -> Option<String> {
        let said = match (self.license, self.origin) {
            (Some(known), _) => return Some(known.to_owned()),
            (None, Origin::Npm) => self.described_by_npm(tree)?.license.as_str()?.to_owned(),
            (None, Origin::PyPi { .. }) => {
                let description = self.described_by_python(tree)?;
                field(&description, "License-Expression").or(field(&description, "License"))?.to_owned()
            }
        };
        // Packages put whole licenses and URLs there too.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b" .+-()".contains(&b);
        let sound = (1..=MAX_LICENSE_BYTES).contains(&said.len()) && said.bytes().all(plain);
        (sound && said.trim() == said).then_some(said)
    }

    /// The file with the text of its license in this tree, if the package has one.
    #[must_use]
    pub fn license_file(&self, tree: &Path) -> Option<PathBuf> {
        let dir = match self.origin {
            Origin::Npm => tree.join("node_modules").join(self.name),
            Origin::PyPi { .. } => self.description_of_python(tree)?,
        };
        license_in(&dir).or_else(|| license_in(&dir.join("licenses")))
    }

    /// The identity of this version's program, if known.
    #[must_use]
    pub fn identity_of(&self, version: &str) -> Option<String> {
        self.identity.map(|identity| identity.replace("{}", version))
    }

    fn described_by_npm(&self, tree: &Path) -> Option<Description> {
        let file = tree.join("node_modules").join(self.name).join("package.json");
        serde_json::from_slice(&read_regular(&file, MAX_RECORD_BYTES).ok()?).ok()
    }

    /// The metadata header of a Python package. Its directory is named after name and version, so it is searched
    /// for.
    fn described_by_python(&self, tree: &Path) -> Option<String> {
        let own = self.description_of_python(tree)?;
        let text = String::from_utf8(read_regular(&own.join("METADATA"), MAX_RECORD_BYTES).ok()?).ok()?;
        // After the first empty line comes prose.
        Some(text.split("\n\n").next().unwrap_or_default().to_owned())
    }

    fn description_of_python(&self, tree: &Path) -> Option<PathBuf> {
        fs::read_dir(tree.join(PYTHON_PACKAGES)).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (name, _) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
            (same_name(name) == same_name(self.name)).then(|| entry.path())
        })
    }
}

/// The first file of a directory whose name says that it is a license.
#[must_use]
pub fn license_in(dir: &Path) -> Option<PathBuf> {
    let is_license = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["license", "licence", "copying"].iter().any(|start| name.starts_with(start))
    };
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| entry.file_name().to_str().is_some_and(is_license))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files.into_iter().next()
}

/// The value of a header field.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A name in `PyPI`'s normal form.
fn same_name(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(origin: Origin, name: &str) -> Source<'_> {
        let (version, program) = ("1.2.3", "bin/x");
        Source { origin, name, version, license: None, identity: None, program, beside: vec!["node@1.0.0"] }
    }

    fn tree(file: &str, text: &str) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        tree
    }

    #[test]
    fn a_package_says_its_version_and_its_license() {
        let npm = source(Origin::Npm, "@some/agent");
        let file = "node_modules/@some/agent/package.json";
        for (said, license) in [
            (r#""MIT""#, Some("MIT")),
            (r#""(MIT OR Apache-2.0)""#, Some("(MIT OR Apache-2.0)")),
            (r#""SEE LICENSE IN https://x.example/""#, None),
            (r#"{ "type": "MIT" }"#, None),
            (r#"" MIT""#, None),
        ] {
            let tree = tree(file, &format!(r#"{{ "version": "1.2.3", "license": {said} }}"#));
            assert_eq!(npm.installed(tree.path()).as_deref(), Some("1.2.3"));
            assert_eq!(npm.license_of(tree.path()).as_deref(), license, "{said}");
            // A known license needs no metadata.
            let known = Source { license: Some("Apache-2.0"), ..npm.clone() };
            assert_eq!(known.license_of(tree.path()).as_deref(), Some("Apache-2.0"));
        }
        assert_eq!(npm.installed(tree(file, "{}").path()), None);

        let pypi = source(Origin::PyPi { pythons: &[] }, "Some.agent");
        let head = "Metadata-Version: 2.4\nName: some-agent\nVersion: 1.2.3\nLicense-Expression: MIT\n";
        for dir in ["some_agent-1.2.3.dist-info", "Some.Agent-1.2.3.dist-info"] {
            let tree = tree(&format!("site/{dir}/METADATA"), &format!("{head}\nVersion: 9\n"));
            assert_eq!(pypi.installed(tree.path()).as_deref(), Some("1.2.3"));
            assert_eq!(pypi.license_of(tree.path()).as_deref(), Some("MIT"));
        }
        let other = tree("site/some_agent_more-1.2.3.dist-info/METADATA", head);
        assert_eq!(pypi.installed(other.path()), None);
    }

    #[test]
    fn a_license_is_found_in_the_package_and_not_beside_it() {
        let npm = source(Origin::Npm, "@some/agent");
        let found = tree("node_modules/@some/agent/LICENSE.md", "text");
        let expected = found.path().join("node_modules/@some/agent/LICENSE.md");
        assert_eq!(npm.license_file(found.path()), Some(expected));
        assert_eq!(npm.license_file(tree("node_modules/@some/LICENSE", "text").path()), None);
        let pypi = source(Origin::PyPi { pythons: &[] }, "some-agent");
        let file = "site/some_agent-1.2.3.dist-info/licenses/COPYING";
        let found = tree(file, "text");
        assert_eq!(pypi.license_file(found.path()), Some(found.path().join(file)));
    }

    #[test]
    fn packages_are_named_in_the_syntax_of_their_registry() {
        assert_eq!(source(Origin::Npm, "x").wanted("1.2.4"), ["x@1.2.4", "node@1.0.0"]);
        assert_eq!(source(Origin::PyPi { pythons: &[] }, "x").wanted("1.2.4")[0], "x==1.2.4");
    }
}
