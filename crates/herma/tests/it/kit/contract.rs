//! Files for a test: contracts and scripts for the fixture `string-slugify`, and programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Herma, run_tool};

/// The step by which the fixture's bug is fixed.
const FIX: &str = r#"
  - write:
      path: slugify.sh
      text: |
        slugify() {
            printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
        }
"#;

/// A script that fixes the bug and then takes these steps, each a line that starts with `- `.
pub(crate) fn fix_and(steps: &[&str]) -> String {
    let steps: String = steps.iter().flat_map(|step| ["  ", step, "\n"]).collect();
    format!("steps:{FIX}{steps}")
}

/// The fixture's contract with these keys of the front matter replaced or added.
pub(crate) fn contract_text(terms: &[(&str, &str)]) -> String {
    let text = herma_fixtures::find("string-slugify").unwrap().contract;
    let (front, brief) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let replaced = |line: &str| terms.iter().any(|(key, _)| line.starts_with(&format!("{key}:")));
    let mut kept = String::new();
    let mut dropping = false;
    for line in front.lines() {
        // An indented line belongs to the key above it.
        dropping = if line.starts_with(' ') { dropping } else { replaced(line) };
        if !dropping {
            kept.extend([line, "\n"]);
        }
    }
    let added: String = terms.iter().flat_map(|(key, value)| [key, ": ", value, "\n"]).collect();
    format!("---\n{kept}{added}---\n{brief}")
}

impl Herma {
    /// Writes the fixture's contract with these keys replaced or added.
    pub(crate) fn contract(&self, terms: &[(&str, &str)]) -> PathBuf {
        self.file("contracts/contract.md", contract_text(terms))
    }

    /// Writes a script: the text of one, or the name of one of the fixture's.
    pub(crate) fn script(&self, script: &str) -> PathBuf {
        let text = herma_fixtures::find("string-slugify").unwrap().script(script).unwrap_or(script);
        self.file("script.yaml", text)
    }

    /// Writes a file into the test's directory.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.place(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Makes a program from a file. Another process writes it: a file that this one had open for writing while a
    /// second test starts something could not be run.
    pub(crate) fn program(&self, path: &str, from: &Path) -> PathBuf {
        let path = self.place(path);
        let words = ["-D", "-m", "755"].map(OsStr::new);
        run_tool("install", &[&words[..], &[from.as_os_str(), path.as_os_str()]].concat(), &[]);
        path
    }

    /// A path in the test's directory, where something is about to be put.
    fn place(&self, path: &str) -> PathBuf {
        let path = self.at(path);
        if path.starts_with(self.home()) {
            self.marked_home();
        }
        path
    }
}
