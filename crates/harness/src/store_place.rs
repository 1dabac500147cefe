//! Which store an installation uses: the environment precedes `settings.yaml`, and that precedes the file in herma's home.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use herma_core::secret::Secret;
use herma_core::store::StoreError;
use herma_core::visible::visible_line;
use herma_destination::{Tool, ToolError};
use herma_router::config::read_secret;
use herma_store::StoreLocation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret_source::SecretSource;

/// The store that variables of the environment name.
#[derive(Clone, Debug, Default)]
pub struct StoreVariables {
    /// `HERMA_STORE`. Its value can contain a password that was written in the wrong place.
    pub url: Option<Secret<String>>,
    /// `HERMA_STORE_PASSWORD`.
    pub password: Option<Secret<String>>,
    /// `HERMA_STORE_PASSWORD_FILE`.
    pub password_file: Option<PathBuf>,
}

/// The operator's settings for the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// The store's URL, without a password; `HERMA_STORE` precedes it.
    pub url: Option<String>,
    /// The source of the password.
    pub password: Option<PasswordSource>,
}

/// The source of a password: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PasswordSource {
    /// A variable of the environment.
    pub env: Option<String>,
    /// A file that only its owner reads.
    pub file: Option<PathBuf>,
    /// A program and its arguments. It prints the password.
    pub command: Option<Vec<String>>,
    /// An item of the kernel's keyring.
    pub keyring: Option<KeyringItem>,
}

/// An item of the kernel's keyring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyringItem {
    /// The service.
    pub service: String,
    /// The user.
    pub user: String,
}

/// The store cannot be located. No message contains a password.
#[derive(Debug, thiserror::Error)]
pub enum StorePlaceError {
    /// The URL cannot be used.
    #[error("{origin}: {error}")]
    Url {
        /// The variable or key that has the URL.
        origin: &'static str,
        /// The problem.
        error: StoreError,
    },
    /// The password cannot be had.
    #[error("{origin}: {problem}")]
    Password {
        /// The variable or key that names the source.
        origin: &'static str,
        /// The problem.
        problem: String,
    },
    /// The program that prints the password failed.
    #[error("store.password.command: {0}")]
    Command(ToolError),
    /// The settings are about the password of a store that has none.
    #[error("{origin} is set, and the store `{location}` has no password")]
    NoPassword {
        /// The variable or key.
        origin: &'static str,
        /// The store's URL.
        location: String,
    },
}

impl StorePlaceError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Url { .. } => {
                "name the store with `sqlite:PATH` or `postgres://USER@HOST:PORT/DATABASE`, in HERMA_STORE or in `store.url` \
                 of settings.yaml"
            }
            Self::Password { .. } | Self::Command(_) => "correct the source of the password",
            Self::NoPassword { .. } => "remove it, or name a PostgreSQL server",
        }
    }
}

const IN_ENVIRONMENT: &str = "HERMA_STORE";
const IN_SETTINGS: &str = "store.url in settings.yaml";
const TARGET: &str = "--to";
const TARGET_PASSWORD: &str = "--password-file";
const PASSWORD: &str = "HERMA_STORE_PASSWORD";
const PASSWORD_FILE: &str = "HERMA_STORE_PASSWORD_FILE";
const PASSWORD_SETTING: &str = "store.password in settings.yaml";

/// The sources of a store's location and password.
pub(crate) struct StorePlace<'a> {
    /// The file in herma's home.
    pub(crate) home_file: PathBuf,
    pub(crate) variables: &'a StoreVariables,
    pub(crate) settings: &'a StoreSettings,
    pub(crate) secrets: &'a SecretSource,
    /// For the command that prints the password.
    pub(crate) search_path: &'a OsStr,
    pub(crate) user_home: &'a Path,
}

/// The store of an installation, with its password. A password belongs to the URL beside it: that of the settings is never
/// sent to a server that the environment names.
pub(crate) fn store_location(place: &StorePlace<'_>) -> Result<StoreLocation, StorePlaceError> {
    let variables = place.variables;
    if let Some(url) = &variables.url {
        let location = parse(url.expose(), IN_ENVIRONMENT)?;
        let (origin, password) = match (&variables.password, &variables.password_file) {
            (Some(_), Some(_)) => {
                let problem = format!("{PASSWORD_FILE} is set too: unset one of them");
                return Err(StorePlaceError::Password { origin: PASSWORD, problem });
            }
            (Some(password), None) => (PASSWORD, Some(password.clone())),
            (None, Some(file)) => (PASSWORD_FILE, Some(from_file(file, PASSWORD_FILE)?)),
            (None, None) => (PASSWORD, None),
        };
        return with_password(location, password, origin);
    }
    let Some(url) = &place.settings.url else { return Ok(StoreLocation::file(&place.home_file)) };
    let location = parse(url, IN_SETTINGS)?;
    let password = place.settings.password.as_ref().map(|source| read_password(source, place)).transpose()?;
    with_password(location, password, PASSWORD_SETTING)
}

/// Another store than that of the installation, with the password in a file. Without a file, that of the environment is taken
/// where the environment names no store.
pub(crate) fn target_location(
    url: &str,
    password_file: Option<&Path>,
    variables: &StoreVariables,
) -> Result<StoreLocation, StorePlaceError> {
    let location = parse(url, TARGET)?;
    let password = match (password_file, &variables.password, &variables.password_file) {
        (Some(file), _, _) => Some(from_file(file, TARGET_PASSWORD)?),
        (None, Some(password), None) if variables.url.is_none() => Some(password.clone()),
        (None, None, Some(file)) if variables.url.is_none() => Some(from_file(file, PASSWORD_FILE)?),
        _ => None,
    };
    with_password(location, password, TARGET_PASSWORD)
}

fn parse(url: &str, origin: &'static str) -> Result<StoreLocation, StorePlaceError> {
    url.parse().map_err(|error| StorePlaceError::Url { origin, error })
}

fn with_password(
    location: StoreLocation,
    password: Option<Secret<String>>,
    origin: &'static str,
) -> Result<StoreLocation, StorePlaceError> {
    match (location, password) {
        (StoreLocation::Postgres(mut location), password) => {
            location.password = password;
            Ok(StoreLocation::Postgres(location))
        }
        (location, Some(_)) => Err(StorePlaceError::NoPassword { origin, location: location.to_string() }),
        (location, None) => Ok(location),
    }
}

fn read_password(source: &PasswordSource, place: &StorePlace<'_>) -> Result<Secret<String>, StorePlaceError> {
    let problem = |problem: String| StorePlaceError::Password { origin: PASSWORD_SETTING, problem };
    match source {
        PasswordSource { env: Some(name), file: None, command: None, keyring: None } => {
            let value = place.secrets.0.variable(name);
            let value =
                value.ok_or_else(|| problem(format!("the variable `{}` is not set", visible_line(name))))?;
            let value = value.into_string().map_err(|_| problem("the variable is not a text".to_owned()))?;
            alone(&value, PASSWORD_SETTING)
        }
        PasswordSource { env: None, file: Some(file), command: None, keyring: None } => {
            from_file(file, PASSWORD_SETTING)
        }
        PasswordSource { env: None, file: None, command: Some(command), keyring: None } => {
            let Some((program, arguments)) = command.split_first() else {
                return Err(problem("the command is empty".to_owned()));
            };
            if !program.starts_with('/') {
                return Err(problem("the command is not an absolute path".to_owned()));
            }
            let tool = Tool::at(program, PathBuf::from(program));
            let call =
                tool.call().args(arguments).env("PATH", place.search_path).env("HOME", place.user_home);
            let output = call.checked().map_err(StorePlaceError::Command)?;
            let text = String::from_utf8(output.stdout);
            alone(&text.map_err(|_| problem("the command prints no text".to_owned()))?, PASSWORD_SETTING)
        }
        PasswordSource { env: None, file: None, command: None, keyring: Some(item) } => {
            let text = place.secrets.0.keyring(&item.service, &item.user);
            alone(&text.map_err(|why| problem(visible_line(&why)))?, PASSWORD_SETTING)
        }
        _ => Err(problem("expected exactly one of `env`, `file`, `command` and `keyring`".to_owned())),
    }
}

fn from_file(file: &Path, origin: &'static str) -> Result<Secret<String>, StorePlaceError> {
    let text = read_secret(file).map_err(|why| {
        let problem = format!("the file `{}` {why}", visible_line(&file.to_string_lossy()));
        StorePlaceError::Password { origin, problem }
    })?;
    alone(&text, origin)
}

/// The password without the end of its line.
fn alone(text: &str, origin: &'static str) -> Result<Secret<String>, StorePlaceError> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() || text.contains(char::is_control) {
        let problem = "it is empty, or has several lines or a control character".to_owned();
        return Err(StorePlaceError::Password { origin, problem });
    }
    Ok(Secret::new(text.to_owned()))
}
