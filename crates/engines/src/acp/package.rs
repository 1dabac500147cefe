//! The package that the operator names for an agent: what `herma engines install` fetches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::origin::{Origin, PYTHONS};
use crate::source::Source;

/// The package that an agent is installed from: one registry, its name there, and one exact version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Described")]
pub struct AcpPackage {
    origin: Origin,
    name: String,
    version: String,
    /// Further packages to fetch, in the registry's syntax.
    beside: Vec<String>,
}

/// The same, as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Described {
    /// Its name in npm's registry.
    #[serde(default)]
    npm: Option<String>,
    /// Its name in Python's.
    #[serde(default)]
    pypi: Option<String>,
    /// The version that is fetched.
    version: String,
    /// Packages that are fetched beside, each with its version: the interpreter of a script.
    #[serde(default)]
    beside: BTreeMap<String, String>,
}

impl AcpPackage {
    /// The installation source, with this program.
    pub(super) fn source<'a>(&'a self, program: &'a str) -> Source<'a> {
        Source {
            origin: self.origin,
            name: &self.name,
            version: &self.version,
            license: None,
            identity: None,
            program,
            beside: self.beside.iter().map(String::as_str).collect(),
        }
    }
}

impl TryFrom<Described> for AcpPackage {
    type Error = String;

    fn try_from(described: Described) -> Result<Self, String> {
        let Described { npm, pypi, version, beside } = described;
        let (origin, name) = match (npm, pypi) {
            (Some(name), None) => (Origin::Npm, name),
            (None, Some(name)) => (Origin::PyPi { pythons: PYTHONS }, name),
            (None, None) => return Err("a package is named by `npm` or by `pypi`".to_owned()),
            (Some(_), Some(_)) => {
                return Err("a package is named by `npm` or by `pypi`, not by both".to_owned());
            }
        };
        check(origin, &name, &version)?;
        for (name, version) in &beside {
            check(origin, name, version)?;
        }
        let beside = beside.iter().map(|(name, version)| origin.exactly(name, version)).collect();
        Ok(Self { origin, name, version, beside })
    }
}

/// Refuses what would be taken for more than one version of one package.
fn check(origin: Origin, name: &str, version: &str) -> Result<(), String> {
    let registry = origin.name();
    if !origin.is_name(name) {
        return Err(format!("`{name}` is not the name of a package of {registry}"));
    }
    if !origin.is_exact(version) {
        return Err(format!("the version `{version}` of `{name}` is not one exact version such as 1.2.3"));
    }
    Ok(())
}
