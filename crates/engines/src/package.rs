//! The package that an agent is installed from, and where its program lies in the tree that comes of it.

use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The registry that a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// npm's.
    Npm,
    /// Python's. The interpreter is no package there, so that of the machine is copied into the tree.
    PyPi {
        /// The versions of Python that it runs with.
        pythons: &'static [&'static str],
    },
}

/// A package of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Which registry that is.
    pub origin: Origin,
    /// Its name there.
    pub name: &'static str,
    /// The version that herma was tried with; another one can be asked for.
    pub version: &'static str,
    /// What its license is, as the package says it.
    pub license: &'static str,
    /// What its program says that it is; `{}` stands for the version.
    pub identity: &'static str,
    /// What runs where the machine is x86-64.
    pub on_x86_64: Build,
    /// What runs where the machine is ARM of 64 bits.
    pub on_aarch64: Build,
}

/// What of a tree runs on one kind of machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// The native program, below the root of the tree: the agent's own, or the interpreter of its script.
    pub program: &'static str,
    /// The script that the program interprets, where it is an interpreter.
    pub script: Option<&'static str>,
    /// Packages that are fetched beside, each with its exact version: the interpreter.
    pub beside: &'static [&'static str],
}

/// What is read of a package's own description.
#[derive(Deserialize)]
struct Description {
    version: String,
}

impl Build {
    /// A program that needs no interpreter.
    #[must_use]
    pub const fn native(program: &'static str) -> Self {
        Self { program, script: None, beside: &[] }
    }
}

impl Origin {
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi { .. } => "PyPI",
        }
    }
}

/// Where the packages of Python lie in a tree, and where its interpreter lies.
pub const PYTHON_PACKAGES: &str = "site";
/// See [`PYTHON_PACKAGES`].
pub const PYTHON_HOME: &str = "python";

impl Package {
    /// What runs on this machine.
    #[must_use]
    pub fn build(&self) -> Build {
        if cfg!(target_arch = "aarch64") { self.on_aarch64 } else { self.on_x86_64 }
    }

    /// Everything that is fetched for a version of it, as its registry wants it named.
    #[must_use]
    pub fn wanted(&self, version: &str) -> Vec<String> {
        let own = match self.origin {
            Origin::Npm => format!("{}@{version}", self.name),
            Origin::PyPi { .. } => format!("{}=={version}", self.name),
        };
        std::iter::once(own).chain(self.build().beside.iter().map(|beside| (*beside).to_owned())).collect()
    }

    /// The version that is installed in a tree; none where it cannot be read.
    #[must_use]
    pub fn installed(&self, tree: &Path) -> Option<String> {
        let version = match self.origin {
            Origin::Npm => {
                let file = tree.join("node_modules").join(self.name).join("package.json");
                let read: Description = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
                read.version
            }
            Origin::PyPi { .. } => self.described(&tree.join(PYTHON_PACKAGES))?,
        };
        let sound = (1..=64).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_graphic());
        sound.then_some(version)
    }

    /// The version that a package of Python is described with: the name of its description has it too, so that it has to
    /// be looked for.
    fn described(&self, packages: &Path) -> Option<String> {
        let stem = format!("{}-", self.name.replace('-', "_"));
        let own = fs::read_dir(packages).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            (name.starts_with(&stem) && name.ends_with(".dist-info")).then(|| entry.path())
        })?;
        let text = fs::read_to_string(own.join("METADATA")).ok()?;
        // What follows the first empty line is prose.
        let mut head = text.lines().take_while(|line| !line.is_empty());
        head.find_map(|line| line.strip_prefix("Version: ").map(ToOwned::to_owned))
    }

    /// What a program of this version says that it is.
    #[must_use]
    pub fn identity_of(&self, version: &str) -> String {
        self.identity.replace("{}", version)
    }
}
