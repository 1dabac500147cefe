//! The package that an agent is installed from, and where its program lies in the tree that comes of it.

use std::path::Path;

use serde::Deserialize;

/// A package of the npm registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name there.
    pub name: &'static str,
    /// The version that herma was tried with; another one can be asked for.
    pub version: &'static str,
    /// What its license is, as the package says it.
    pub license: &'static str,
    /// What a program of another version of it says that it is; `{}` stands for the version.
    pub identity: &'static str,
    /// Its native program in the tree, where the machine is x86-64.
    pub on_x86_64: &'static str,
    /// Its native program in the tree, where the machine is ARM of 64 bits.
    pub on_aarch64: &'static str,
}

/// What is read of a package's own description.
#[derive(Deserialize)]
struct Description {
    version: String,
}

impl Package {
    /// The native program for this machine, below the root of the tree.
    #[must_use]
    pub fn program(&self) -> &'static str {
        if cfg!(target_arch = "aarch64") { self.on_aarch64 } else { self.on_x86_64 }
    }

    /// The version that is installed in a tree; none where it cannot be read.
    #[must_use]
    pub fn installed(&self, tree: &Path) -> Option<String> {
        let file = tree.join("node_modules").join(self.name).join("package.json");
        let read: Description = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        let sound =
            (1..=64).contains(&read.version.len()) && read.version.bytes().all(|b| b.is_ascii_graphic());
        sound.then_some(read.version)
    }

    /// What a program of this version says that it is.
    #[must_use]
    pub fn identity_of(&self, version: &str) -> String {
        self.identity.replace("{}", version)
    }
}
