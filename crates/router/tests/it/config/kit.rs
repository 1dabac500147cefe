//! Shared by the tests of the configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use herma_router::config::{BadConfig, Config, Lookup};

/// A configuration with nothing that can be left out.
pub(crate) const LEAST: &str = r#"state = "state"
[listen]
address = "127.0.0.1:4000"
[upstreams.script]
provider = "scripted"
scripts = ["a.yaml"]
[models.small]
chain = ["script/small"]
"#;

pub(crate) fn parse(text: &str) -> Result<Config, BadConfig> {
    Config::parse(text, Path::new("conf/router.toml"))
}

/// Each text with everything that is wrong with it, one under the other.
pub(crate) fn errors(texts: &[&str]) -> String {
    let told = |text: &&str| said(text, text);
    texts.iter().map(told).collect::<Vec<String>>().join("\n")
}

/// The same for parts that are added to [`LEAST`], whose lines count too.
pub(crate) fn errors_of_parts(parts: &[&str]) -> String {
    let told = |part: &&str| said(part, &format!("{LEAST}{part}"));
    parts.iter().map(told).collect::<Vec<String>>().join("\n")
}

fn said(shown: &str, text: &str) -> String {
    let error = parse(text).expect_err(shown).to_string();
    let lines: Vec<String> = error.lines().map(|line| format!("    {line}")).collect();
    format!("{}\n{}", shown.trim_end(), lines.join("\n"))
}

/// An environment and a keyring.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) variables: BTreeMap<&'static str, OsString>,
    pub(crate) keyring: BTreeMap<(&'static str, &'static str), &'static str>,
}

impl Around {
    pub(crate) fn new(variables: &[(&'static str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
        Self { variables, ..Self::default() }
    }
}

impl Lookup for Around {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn keyring(&self, service: &str, user: &str) -> Result<String, String> {
        let found = self.keyring.iter().find(|((s, u), _)| (*s, *u) == (service, user));
        found.map(|(_, value)| (*value).to_owned()).ok_or_else(|| "it is locked".to_owned())
    }
}
