//! The operator's configuration of an agent that speaks the Agent Client Protocol: its command, and its environment.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use herma_core::model_call::Endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::package::{AcpPackage, Described};

/// An agent that speaks the Agent Client Protocol over its standard streams.
///
/// In `args`, `env` and `files`, `{model}` stands for the contract's model, `{router}` for the address of the run's router,
/// `{home}` for the agent's own directory, `{workspace}` for the workspace and `{tree}` for where its tree is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcpAgent {
    /// The package that `herma engines install` fetches it from.
    // Not written, and so no part of the engine's digest: see `Acp::with_configuration`.
    #[serde(default, skip_serializing)]
    #[schemars(with = "Option<Described>")]
    pub package: Option<AcpPackage>,
    /// The program, below the root of its tree, where what is admitted is a tree and not one file.
    #[serde(default)]
    pub program: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The arguments by which it says in one line who it is.
    #[serde(default = "version_flag")]
    pub identity: Vec<String>,
    /// The API by which it asks its model; none where it asks none.
    #[serde(default)]
    pub asks: Option<Endpoint>,
    /// The variable in which it expects the key of its model's provider: there it finds the run's token.
    #[serde(default)]
    pub token: Option<String>,
    /// Variables that it needs in its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files that it finds in its own directory, by their paths there.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Directories in its own directory where it keeps its sessions, so that a later run can go on with one.
    // Left out where there are none: what was admitted before there was such a key is what it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Directories at the top of the workspace that it would run code from: it sees them as empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hides: Vec<String>,
}

fn version_flag() -> Vec<String> {
    vec!["--version".to_owned()]
}

/// Variables that a configuration cannot set: herma's own, and those of the dynamic loader and PATH.
const HERMAS_OWN: [&str; 2] = ["HERMA_", "LD_"];

impl AcpAgent {
    /// Refuses what could not be started, or would be written elsewhere than in its own directory.
    pub fn check(&self) -> Result<(), String> {
        if let Some(program) = &self.program {
            below("program", program)?;
        }
        if self.package.is_some() && self.program.is_none() {
            return Err("`package` without `program`: say which file of what is installed runs".to_owned());
        }
        for file in self.files.keys() {
            below("a file", file)?;
        }
        for (at, place) in self.sessions.iter().enumerate() {
            below("a directory for sessions", place)?;
            let lies_in = |other: &String| Path::new(other).starts_with(place);
            let twice = self.sessions.iter().enumerate().any(|(other, path)| other != at && lies_in(path));
            if twice || self.files.keys().any(lies_in) {
                return Err(format!(
                    "`{place}` is for sessions only: no file and no other place may be in it"
                ));
            }
        }
        for name in &self.hides {
            below("a hidden directory", name)?;
            if name.contains('/') {
                return Err(format!(
                    "`{name}` cannot be hidden: only directories at the top of the workspace can"
                ));
            }
        }
        for name in self.env.keys().chain(&self.token) {
            let sound = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !sound || name == "PATH" || HERMAS_OWN.iter().any(|own| name.starts_with(own)) {
                return Err(format!("`{name}` is no variable that an agent can be given"));
            }
        }
        let texts = self.args.iter().chain(&self.identity).chain(self.env.values());
        if texts.into_iter().any(|text| text.contains('\0')) {
            return Err("an argument or a variable holds NUL".to_owned());
        }
        Ok(())
    }
}

/// A path that stays below where it begins.
fn below(what: &str, path: &str) -> Result<(), String> {
    let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || path.contains('\0') || !plain {
        return Err(format!("{what} `{path}` is not a plain path without `..` that begins with no `/`"));
    }
    Ok(())
}

/// The text with the placeholders in braces filled in. Filled-in text is not expanded again.
pub(super) fn filled(text: &str, words: &[(&str, &str)]) -> String {
    let (mut made, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        let word = words.iter().find_map(|(word, value)| {
            let after = from.strip_prefix('{')?.strip_prefix(word)?.strip_prefix('}')?;
            Some((*value, after))
        });
        let (value, after) = word.unwrap_or_else(|| from.split_at(1));
        made.push_str(value);
        rest = after;
    }
    made.push_str(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> AcpAgent {
        AcpAgent {
            package: None,
            program: None,
            args: Vec::new(),
            identity: version_flag(),
            asks: None,
            token: None,
            env: BTreeMap::new(),
            files: BTreeMap::new(),
            sessions: Vec::new(),
            hides: Vec::new(),
        }
    }

    #[test]
    fn placeholders_are_replaced_once_and_other_braces_stay() {
        let words = [("model", "{router}"), ("router", "R")];
        assert_eq!(filled(r#"{"m":"{model}","r":"{router}/v1"}"#, &words), r#"{"m":"{router}","r":"R/v1"}"#);
        for same in ["", "{", "{}", "{{model", "{env:X}", "ü{ü"] {
            assert_eq!(filled(same, &words), same);
        }
        assert_eq!(filled("{{model}}", &words), "{{router}}");
    }

    #[test]
    fn sessions_have_their_own_paths_and_hidden_directories_are_top_level() {
        let with = |sessions: &[&str], files: &[&str], hides: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let files = files.iter().map(|&name| (name.to_owned(), String::new())).collect();
            AcpAgent { sessions: all(sessions), files, hides: all(hides), ..agent() }.check()
        };
        assert_eq!(with(&["data", "state/own"], &["state/config", "data.json"], &[".opencode"]), Ok(()));
        assert!(with(&["data"], &["data/config"], &[]).is_err());
        assert!(with(&["data", "data"], &[], &[]).is_err() && with(&["a/b", "a"], &[], &[]).is_err());
        for path in ["", "/data", "../data", "."] {
            assert!(with(&[path], &[], &[]).is_err() && with(&[], &[], &[path]).is_err(), "{path:?}");
        }
        assert!(with(&[], &[], &["a/b"]).is_err());
    }

    #[test]
    fn escaping_paths_and_reserved_names_are_refused() {
        assert_eq!(agent().check(), Ok(()));
        for path in ["", "/etc/passwd", "../x", "a/../../x", "./x", "a\0"] {
            assert!(AcpAgent { program: Some(path.to_owned()), ..agent() }.check().is_err(), "{path:?}");
            let files = [(path.to_owned(), String::new())].into();
            assert!(AcpAgent { files, ..agent() }.check().is_err(), "{path:?}");
        }
        for name in ["", "PATH", "HERMA_RUN", "HERMA_ROUTER_TOKEN", "LD_PRELOAD", "A=B", "A\0"] {
            let env = [(name.to_owned(), String::new())].into();
            assert!(AcpAgent { env, ..agent() }.check().is_err(), "{name:?}");
            assert!(AcpAgent { token: Some(name.to_owned()), ..agent() }.check().is_err(), "{name:?}");
        }
        assert!(AcpAgent { args: vec!["a\0".to_owned()], ..agent() }.check().is_err());
    }
}
