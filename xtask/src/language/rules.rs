//! The rules of `xtask/language.toml`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use super::text::Scope;
use crate::command::TaskError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    checked: Vec<String>,
    #[serde(default)]
    rule: Vec<Rule>,
    #[serde(default)]
    exception: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    pattern: String,
    instead: String,
    scopes: Vec<Scope>,
}

/// A text that a rule may find in one file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    path: String,
    text: String,
    /// For readers of the file.
    #[allow(dead_code, reason = "a reason is required; only people read it")]
    reason: String,
}

/// The rules, compiled.
pub(crate) struct Rules {
    checked: Vec<String>,
    compiled: Vec<(Regex, Rule)>,
    exceptions: Vec<Exception>,
    /// The exceptions that were needed.
    used: RefCell<BTreeSet<usize>>,
}

impl Rules {
    /// Reads and compiles the rules.
    pub(crate) fn read(path: &Path) -> Result<Self, TaskError> {
        let text = fs::read_to_string(path).map_err(TaskError::file(path))?;
        let File { checked, rule, exception } =
            toml::from_str(&text).map_err(|error| TaskError::Rules(error.to_string()))?;
        let compile = |rule: Rule| {
            let regex = Regex::new(&rule.pattern).map_err(|error| TaskError::Rules(error.to_string()))?;
            Ok((regex, rule))
        };
        let compiled = rule.into_iter().map(compile).collect::<Result<_, TaskError>>()?;
        Ok(Self { checked, compiled, exceptions: exception, used: RefCell::default() })
    }

    /// Whether this file is on the list.
    pub(crate) fn checks(&self, path: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|listed| Path::new(path).starts_with(listed));
        listed(&self.checked)
    }

    /// The matches in a line, each with the advice of its rule.
    pub(crate) fn find(&self, path: &str, scope: Scope, line: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (regex, rule) in &self.compiled {
            if rule.scopes.contains(&scope)
                && let Some(matched) = regex.find(line)
                && !self.is_exception(path, line)
            {
                found.push((matched.as_str().trim().to_owned(), rule.instead.clone()));
            }
        }
        found
    }

    fn is_exception(&self, path: &str, line: &str) -> bool {
        let matches = |exception: &Exception| exception.path == path && line.contains(&exception.text);
        let Some(at) = self.exceptions.iter().position(matches) else { return false };
        self.used.borrow_mut().insert(at);
        true
    }

    /// The exceptions that nothing needed so far.
    pub(crate) fn unused_exceptions(&self) -> Vec<String> {
        let used = self.used.borrow();
        let unused = self.exceptions.iter().enumerate().filter(|(at, _)| !used.contains(at));
        unused.map(|(_, exception)| format!("\"{}\" in {}", exception.text, exception.path)).collect()
    }
}
