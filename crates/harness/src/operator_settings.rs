//! The operator's settings for the whole installation: `settings.yaml` in herma's home.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use herma_core::approver::ApproverName;
use herma_core::defaults::DoSettings;
use herma_core::engine::EngineName;
use herma_core::environment::Registry;
use herma_core::units::Span;
use herma_destination::ImagePin;
use herma_engines::acp::{self, AcpAgent};
use herma_environments::tools::OperatorTool;
use herma_evidence::secrets::scan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file_reading::read_regular;
use crate::store_place::StoreSettings;

/// The largest file of settings that is read.
const MAX_BYTES: u64 = 64 << 10;

/// The operator's settings for the whole installation. Without the file these are the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorSettings {
    /// The agents that speak the Agent Client Protocol, by their names: `opencode` there is the engine `acp-opencode`.
    pub acp: BTreeMap<EngineName, AcpAgent>,
    /// Whether who asked for an approval cannot grant it. Then a request is signed too, because a name that anybody
    /// can give separates nobody.
    pub separation_of_duties: bool,
    /// The image of the destination `docker`, by digest, where none was chosen for the repository.
    #[schemars(with = "Option<String>")]
    pub docker_image: Option<ImagePin>,
    /// The runtime that Docker uses, such as `runsc`, where none was chosen for the repository; Docker's default otherwise.
    pub docker_runtime: Option<String>,
    /// Engine, model, destination and limits of `herma do`, if neither a flag nor the defaults of the repository set them.
    /// No other command reads this.
    #[serde(rename = "do")]
    pub do_: DoSettings,
    /// How long an approval can be granted and used after it was requested.
    pub approval_valid_for: Span,
    /// How long an operator has to accept or reject what landed.
    pub outcome_within: Span,
    /// The package registries that environments fetch from, where something about them has to be said.
    pub registries: BTreeMap<Registry, RegistrySettings>,
    /// Tools of the operator's own, which the `tools` of an environment can name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// The store and the source of its password, where it is not the file in herma's home.
    pub store: StoreSettings,
    /// The approver whose signature the list of hosts for all runs must carry, where it must carry one.
    pub egress_signed_by: Option<ApproverName>,
}

impl Default for OperatorSettings {
    fn default() -> Self {
        const HOUR: u64 = 60 * 60 * 1000;
        Self {
            acp: BTreeMap::new(),
            separation_of_duties: false,
            docker_image: None,
            docker_runtime: None,
            do_: DoSettings::default(),
            approval_valid_for: Span(24 * HOUR),
            outcome_within: Span(7 * 24 * HOUR),
            registries: BTreeMap::new(),
            tools: BTreeMap::new(),
            store: StoreSettings::default(),
            egress_signed_by: None,
        }
    }
}

/// The operator's settings for a package registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistrySettings {
    /// Whether it may be at an address of the operator's own network, as a company's mirror is.
    pub own_network: bool,
}

/// A tool of the operator's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSettings {
    /// The program.
    pub path: PathBuf,
    /// Other files and directories that it needs, mounted read-only at the same paths.
    #[serde(default)]
    pub mounts: Vec<PathBuf>,
    /// Its variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// The settings cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file exists and cannot be read.
    #[error("{} could not be read: {cause}", file.display())]
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file says something that no setting says.
    #[error("{}: {cause}", file.display())]
    Bad {
        /// Which file.
        file: PathBuf,
        /// The problem.
        cause: BadSettings,
    },
}

/// A text that is not settings.
#[derive(Debug, thiserror::Error)]
pub enum BadSettings {
    /// It contains a secret.
    #[error("it holds a secret ({rule}); an agent gets none but its run's token")]
    Secret {
        /// The rule that found it.
        rule: &'static str,
    },
    /// It is not YAML, or a key or value is unknown; with line and column.
    #[error(transparent)]
    Yaml(Box<serde_saphyr::Error>),
    /// An agent that speaks ACP is not configured correctly.
    #[error("acp: {name}: {problem}")]
    Acp {
        /// The name of the agent.
        name: String,
        /// The problem.
        problem: String,
    },
}

impl OperatorSettings {
    /// The registries that may be at addresses of the operator's own network.
    #[must_use]
    pub fn own_network_registries(&self) -> BTreeSet<Registry> {
        self.registries.iter().filter(|(_, settings)| settings.own_network).map(|(name, _)| *name).collect()
    }

    /// The operator's own tools.
    #[must_use]
    pub fn own_tools(&self) -> Vec<OperatorTool> {
        let tool = |(name, settings): (&String, &ToolSettings)| OperatorTool {
            name: name.clone(),
            path: settings.path.clone(),
            mounts: settings.mounts.clone(),
            env: settings.env.clone(),
        };
        self.tools.iter().map(tool).collect()
    }

    /// Reads the file. A missing one means defaults; one that cannot be read stops herma, because a rule that
    /// was mistyped must not silently be none.
    pub fn read(file: &Path) -> Result<Self, SettingsError> {
        let bytes = read_regular(file, MAX_BYTES);
        let text = match bytes.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other)) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(cause) => return Err(SettingsError::Unreadable { file: file.to_owned(), cause }),
        };
        Self::parse(&text).map_err(|cause| SettingsError::Bad { file: file.to_owned(), cause })
    }

    /// Reads the text of the file, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadSettings> {
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        // The first check, because other messages may quote the text.
        if let Some(found) = scan(text.as_bytes()).first() {
            return Err(BadSettings::Secret { rule: found.rule });
        }
        let read: Self = serde_saphyr::from_str(text).map_err(|error| BadSettings::Yaml(Box::new(error)))?;
        for (name, agent) in &read.acp {
            let too_long = || format!("the name is too long: the engine is called `{}-{name}`", acp::NAME);
            let checked = acp::engine_name(name).ok_or_else(too_long).and_then(|_| agent.check());
            checked.map_err(|problem| BadSettings::Acp { name: name.to_string(), problem })?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<OperatorSettings, SettingsError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.yaml");
        fs::write(&file, text).unwrap();
        OperatorSettings::read(&file)
    }

    #[test]
    fn no_file_and_an_empty_one_say_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let none = OperatorSettings::read(&dir.path().join("settings.yaml")).unwrap();
        assert_eq!(none, OperatorSettings::default());
        assert_eq!(read("# nothing yet\n\n").unwrap(), none);
    }

    #[test]
    fn settings_in_the_file_replace_defaults_one_by_one() {
        let settings = read("separation_of_duties: true\noutcome_within: 2h\n").unwrap();
        assert!(settings.separation_of_duties);
        assert_eq!(settings.outcome_within, Span(7_200_000));
        assert_eq!(settings.approval_valid_for, OperatorSettings::default().approval_valid_for);
        // A digest is long and looks like chance; it is no secret.
        let digest = herma_core::Digest::of(b"image").hex();
        assert!(read(&format!("docker_image: debian@sha256:{digest}\n")).unwrap().docker_image.is_some());
    }

    #[test]
    fn an_irregular_or_large_settings_file_is_an_error_and_does_not_block() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.yaml");
        mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(OperatorSettings::read(&file), Err(SettingsError::Unreadable { .. })));
        // A file that is truncated at the limit must not count as the whole.
        let long = format!("{}separation_of_duties: true\n", "# nothing\n".repeat(10_000));
        assert!(matches!(read(&long), Err(SettingsError::Unreadable { .. })));
    }

    #[test]
    fn an_agent_is_described_or_refused_with_its_name() {
        let settings = read("acp:\n  some:\n    args: [acp]\n    asks: chat\n    token: SOME_KEY\n").unwrap();
        let some = &settings.acp[&"some".parse().unwrap()];
        assert_eq!(
            (&some.args[..], &some.identity[..]),
            (&["acp".to_owned()][..], &["--version".to_owned()][..])
        );
        for (text, why) in [
            ("acp:\n  some:\n    files: { ../x: y }\n", "acp: some: a file `../x` is not a plain path"),
            ("acp:\n  some:\n    env: { HERMA_HOME: y }\n", "acp: some: `HERMA_HOME` is no variable"),
            ("acp:\n  some:\n    command: acp\n", "command"),
            ("acp:\n  an-agent-with-a-very-long-name-x:\n    args: []\n", "the name is too long"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let package = |text: &str| format!("acp:\n  some:\n    program: bin/some\n    package: {text}\n");
        for (text, why) in [
            ("{ npm: some }", "version"),
            ("{ version: 1.2.3 }", "a package is named by `npm` or by `pypi`"),
            ("{ npm: some, pypi: some, version: 1.2.3 }", "not by both"),
            ("{ cargo: some, version: 1.2.3 }", "cargo"),
            ("{ npm: some, version: latest }", "the version `latest` of `some` is not one exact version"),
            ("{ npm: some, version: ^1.2.3 }", "the version `^1.2.3` of `some` is not one exact version"),
            ("{ pypi: some, version: '>=1.2' }", "the version `>=1.2` of `some` is not one exact version"),
            ("{ npm: ../some, version: 1.2.3 }", "`../some` is not the name of a package of npm"),
            ("{ npm: --global, version: 1.2.3 }", "`--global` is not the name of a package of npm"),
            ("{ pypi: '@a/b', version: 1.2.3 }", "`@a/b` is not the name of a package of PyPI"),
            ("{ npm: some, version: 1.2.3, beside: { node: 24 } }", "the version `24` of `node`"),
            ("{ npm: some, version: 1.2.3, beside: { /x: 1.2.3 } }", "`/x` is not the name"),
            ("some@1.2.3", "package"),
        ] {
            let error = read(&package(text)).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("line 4"), "{text}: {error}");
        }
        let error =
            read("acp:\n  some:\n    package: { npm: some, version: 1.2.3 }\n").unwrap_err().to_string();
        assert!(error.contains("acp: some: `package` without `program`"), "{error}");
        let secret = format!("sk-ant-api03-{}", "Zm9vYmFyYmF6cXV4".repeat(4));
        let error = read(&format!("acp:\n  some:\n    env: {{ KEY: {secret} }}\n")).unwrap_err().to_string();
        assert!(error.contains("it holds a secret") && !error.contains("Zm9v"), "{error}");
    }

    #[test]
    fn a_mistyped_rule_is_an_error_with_its_line() {
        for (text, named) in
            [("\nseperation_of_duties: true\n", "2"), ("separation_of_duties: perhaps\n", "1")]
        {
            let error = read(text).unwrap_err().to_string();
            assert!(
                error.contains(&format!("line {named}")) || error.contains(&format!(":{named}:")),
                "{error}"
            );
        }
    }
}
