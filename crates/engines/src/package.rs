//! The package of an agent, and the path of its program in the installed tree.

use crate::origin::Origin;
use crate::source::Source;

/// A package of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Which registry that is.
    pub origin: Origin,
    /// Its name there.
    pub name: &'static str,
    /// The version that herma was tested with; another one can be requested.
    pub version: &'static str,
    /// The license, as the package states it.
    pub license: &'static str,
    /// The identity of its program; `{}` stands for the version.
    pub identity: &'static str,
    /// The build for x86-64.
    pub on_x86_64: Build,
    /// The build for 64-bit ARM.
    pub on_aarch64: Build,
}

/// The program of a tree for one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// The native program, below the root of the tree: the agent's own, or the interpreter of its script.
    pub program: &'static str,
    /// The script that the program interprets, where it is an interpreter.
    pub script: Option<&'static str>,
    /// Further packages to fetch, with exact versions: the interpreter.
    pub beside: &'static [&'static str],
}

impl Build {
    /// A program that needs no interpreter.
    #[must_use]
    pub const fn native(program: &'static str) -> Self {
        Self { program, script: None, beside: &[] }
    }
}

impl Package {
    /// The build for this machine.
    #[must_use]
    pub fn build(&self) -> Build {
        if cfg!(target_arch = "aarch64") { self.on_aarch64 } else { self.on_x86_64 }
    }

    /// The package as an installation source.
    #[must_use]
    pub fn source(&self) -> Source<'static> {
        let build = self.build();
        Source {
            origin: self.origin,
            name: self.name,
            version: self.version,
            license: Some(self.license),
            identity: Some(self.identity),
            program: build.program,
            beside: build.beside.to_vec(),
        }
    }
}
