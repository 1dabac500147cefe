//! The values of an environment definition. Each is checked while it is parsed, so that the error has a position.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::checked_text::{Pattern, check_name, checked_text};

/// A tool, with the version that it must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[a-z0-9][a-z0-9._-]*(@[0-9][0-9A-Za-z.+-]*)?$"))]
pub struct ToolRequest {
    name: String,
    version: Option<ToolVersion>,
}

impl ToolRequest {
    /// A tool in any version.
    #[must_use]
    pub fn any(name: &str) -> Option<Self> {
        check_name(name, "a tool").is_ok().then(|| Self { name: name.to_owned(), version: None })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The start of the version that it must have.
    #[must_use]
    pub fn version(&self) -> Option<&ToolVersion> {
        self.version.as_ref()
    }
}

impl FromStr for ToolRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version.parse()?)),
            None => (text, None),
        };
        check_name(name, "a tool")?;
        Ok(Self { name: name.to_owned(), version })
    }
}

impl TryFrom<String> for ToolRequest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ToolRequest> for String {
    fn from(request: ToolRequest) -> Self {
        request.to_string()
    }
}

impl fmt::Display for ToolRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

checked_text!(
    /// The start of a version, in whole components: `3.12` fits 3.12.4 and not 3.120.
    ToolVersion,
    |text| {
        let component = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
        let sound = text.len() <= 32
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text.split(['.', '-', '+']).all(component);
        // No version has a letter in the place of a number, as `22.x` has.
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let is_number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        if sound && numbers.split('.').all(|part| is_number(&part)) {
            return Ok(());
        }
        let shown: String = text.chars().take(32).collect();
        let start: Vec<&str> = shown.split('.').take_while(is_number).collect();
        let meant = match &start[..] {
            [] => String::new(),
            start if sound => format!("; did you mean `{}`?", start.join(".")),
            _ => String::new(),
        };
        Err(format!("`{shown}` is not a version: write its first numbers, like `22` or `3.12`{meant}"))
    }
);

impl ToolVersion {
    /// Whether a version starts with this one.
    #[must_use]
    pub fn fits(&self, version: &str) -> bool {
        version
            .strip_prefix(self.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
    }
}

/// A package registry, by name. Its hosts come from the operator's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Registry {
    /// npm, pnpm, yarn and bun.
    Npm,
    /// pip, uv and poetry.
    Pypi,
    /// cargo.
    Crates,
    /// Go modules.
    Go,
    /// Maven and Gradle.
    Maven,
    /// gem and bundler.
    Rubygems,
    /// composer.
    Packagist,
    /// dotnet.
    Nuget,
    /// apt.
    Debian,
}

impl Registry {
    /// Every registry.
    pub const ALL: [Self; 9] = [
        Self::Npm,
        Self::Pypi,
        Self::Crates,
        Self::Go,
        Self::Maven,
        Self::Rubygems,
        Self::Packagist,
        Self::Nuget,
        Self::Debian,
    ];

    /// Its name in a definition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Crates => "crates",
            Self::Go => "go",
            Self::Maven => "maven",
            Self::Rubygems => "rubygems",
            Self::Packagist => "packagist",
            Self::Nuget => "nuget",
            Self::Debian => "debian",
        }
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The tree that setup commands run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupOn {
    /// A checkout of the base: its code runs, so that only the same tree shares the result.
    #[default]
    Base,
    /// The inputs alone: every tree with equal inputs shares the result.
    Inputs,
}

checked_text!(
    /// A pattern of files that decide what is fetched.
    InputPattern,
    |text| check_relative(text, "inputs")
);

checked_text!(
    /// A pattern of untracked paths that belong to the environment.
    CachePattern,
    |text| {
        check_relative(text, "cache")?;
        if text.trim_end_matches('/').trim_matches('*').is_empty() {
            return Err(format!("`{text}` in `cache` is every file: name the directories that setup makes"));
        }
        Ok(())
    }
);

fn check_relative(text: &str, key: &str) -> Result<(), String> {
    if text.starts_with(['/', '~']) {
        let relative = text.trim_start_matches(['/', '~']);
        return Err(format!(
            "`{text}` in `{key}` is absolute: paths start at the repository's root; did you mean `{relative}`?"
        ));
    }
    text.parse::<Pattern>().map(drop).map_err(|problem| format!("`{key}`: {problem}"))
}

/// The result that the verification commands must have on the untouched base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectBefore {
    /// They run; whether they pass is not asked.
    #[default]
    Any,
    /// They pass.
    Pass,
    /// At least one fails: a fix turns it green.
    Fail,
}

impl ExpectBefore {
    /// Whether every result is accepted.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// How much git history a checkout has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(with = "HistoryText")]
pub enum History {
    /// None: one commit of the base's tree.
    #[default]
    None,
    /// All commits and tags that the base reaches.
    Full,
    /// This many commits.
    Depth(u32),
}

/// A word or a number, for the schema and the parser.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected `none`, `full` or a number of commits, like 50")]
enum HistoryText {
    Depth(u32),
    Word(String),
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::Full => serializer.serialize_str("full"),
            Self::Depth(commits) => serializer.serialize_u32(*commits),
        }
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = HistoryText::deserialize(deserializer)?;
        match &written {
            HistoryText::Depth(commits @ 1..) => Ok(Self::Depth(*commits)),
            HistoryText::Word(word) if word == "none" => Ok(Self::None),
            HistoryText::Word(word) if word == "full" => Ok(Self::Full),
            HistoryText::Depth(_) => {
                Err(serde::de::Error::custom("`history: 0` is no history: write `none`"))
            }
            HistoryText::Word(word) => Err(serde::de::Error::custom(format!(
                "`{}` is not a history: expected `none`, `full` or a number of commits, like 50",
                word.escape_debug()
            ))),
        }
    }
}
