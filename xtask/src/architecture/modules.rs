//! Which top-level modules of a crate use which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::command::TaskError;
use crate::rust_source::{Part, only, rust_files, without_tests};

/// The top-level modules of a crate, each with the modules that its code uses. Tests are left out.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<String, BTreeSet<String>>);

impl Modules {
    /// Reads the sources below `src`.
    pub(crate) fn read(src: &Path) -> Result<Self, TaskError> {
        let mut read = Vec::new();
        let mut tests = BTreeSet::new();
        for file in rust_files(src)? {
            let source = fs::read_to_string(&file).map_err(TaskError::file(&file))?;
            let code = without_tests(&only(&source, Part::Code), &mut tests);
            let path = file.strip_prefix(src).unwrap_or(&file).with_extension("");
            let path: Vec<String> = path
                .iter()
                .map(|name| name.to_string_lossy().into_owned())
                .filter(|name| name != "mod")
                .collect();
            read.push((path, code));
        }
        let is_module = |path: &[String]| {
            path.first().is_some_and(|top| top != "lib" && top != "main")
                && !path.iter().any(|name| tests.contains(name))
        };
        read.retain(|(path, _)| is_module(path));
        let names: BTreeSet<String> = read.iter().filter_map(|(path, _)| path.first().cloned()).collect();
        let mut modules = Self(names.iter().map(|name| (name.clone(), BTreeSet::new())).collect());
        for (path, code) in read {
            let Some(top) = path.first() else { continue };
            let uses = used(&code, path.len()).into_iter().filter(|name| name != top && names.contains(name));
            modules.0.entry(top.clone()).or_default().extend(uses);
        }
        Ok(modules)
    }

    /// The pairs of modules that use each other.
    pub(crate) fn mutual(&self) -> Vec<(&str, &str)> {
        let uses = |a: &str, b: &str| self.0.get(a).is_some_and(|used| used.contains(b));
        let pairs = self.0.iter().flat_map(|(a, used)| used.iter().map(move |b| (a.as_str(), b.as_str())));
        pairs.filter(|(a, b)| a < b && uses(b, a)).collect()
    }
}

/// The names that code in a module of this depth uses from the root of its crate.
fn used(code: &str, depth: usize) -> BTreeSet<String> {
    let from_above = "super::".repeat(depth);
    let mut names = BTreeSet::new();
    for root in ["crate::", &from_above] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before
                .is_some_and(|character| character.is_alphanumeric() || character == '_' || character == ':')
            {
                continue;
            }
            names.extend(first_names(&code[at + root.len()..]));
        }
    }
    names
}

/// The first name of a path, or the first name of each path in a group.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|character| character.is_alphanumeric() || *character == '_')
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut names, mut start) = (0_usize, Vec::new(), 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_groups_and_paths_from_above_are_uses() {
        let code = "use crate::a::B;\nuse crate::{c::{D, e}, f};\nuse super::super::g;\nuse super::h;\nlet x = mycrate::i;";
        assert_eq!(used(code, 2), ["a", "c", "f", "g"].map(str::to_owned).into());
    }
}
