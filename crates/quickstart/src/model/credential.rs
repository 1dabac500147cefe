//! The source of a credential: named by a flag, found, or typed.

use std::path::PathBuf;

use herma_core::engine::EngineName;
use herma_core::secret::Secret;
use herma_destination::Tool;

use crate::choices::{Credential, ProviderChoice};
use crate::error::QuickstartError;
use crate::session::Session;

/// The shell that runs the command of a credential.
const SHELL: &str = "/bin/sh";

/// A credential, by its source.
pub(crate) enum Found {
    /// A variable that every run reads.
    Variable(String),
    /// A file that every run reads.
    File(PathBuf),
    /// The kernel's keyring.
    Keyring {
        /// The service.
        service: String,
        /// The user.
        user: String,
    },
    /// A secret that is to be kept in this file of herma's home.
    Kept {
        /// The secret.
        secret: Secret<String>,
        /// The file's name.
        file: String,
    },
    /// A secret that would be kept in this file: in a dry run nothing is asked or run.
    Later(String),
    /// None is needed.
    None,
}

/// Finds the credential of a new upstream, or asks for it.
pub(crate) fn find(
    session: &Session<'_>,
    provider: ProviderChoice,
    upstream: &str,
    is_on_this_machine: bool,
) -> Result<Found, QuickstartError> {
    let file = format!("{upstream}.key");
    let secrets = &session.installation.settings().secrets.0;
    match &session.choices.credential {
        Some(Credential::Variable(name)) => return Ok(Found::Variable(name.clone())),
        Some(Credential::File(path)) => {
            let path = std::path::absolute(path).map_err(|source| QuickstartError::Io {
                path: path.clone(),
                doing: "found",
                source,
            })?;
            return Ok(Found::File(path));
        }
        Some(Credential::Keyring { service, user }) => {
            return Ok(Found::Keyring { service: service.clone(), user: user.clone() });
        }
        Some(Credential::None) => return Ok(Found::None),
        Some(Credential::Command(_)) if session.choices.dry_run => return Ok(Found::Later(file)),
        Some(Credential::Command(command)) => {
            return Ok(Found::Kept { secret: output_of(session, command)?, file });
        }
        Some(Credential::Typed) => return ask(session, provider, file),
        None => {}
    }
    if let Some(variable) = provider.variable()
        && secrets.variable(variable).is_some_and(|value| !value.is_empty())
    {
        return Ok(Found::Variable(variable.to_owned()));
    }
    if session.installation.home.root().join(&file).is_file() {
        return Ok(Found::File(PathBuf::from(file)));
    }
    if is_on_this_machine {
        return Ok(Found::None);
    }
    ask(session, provider, file)
}

fn ask(session: &Session<'_>, provider: ProviderChoice, file: String) -> Result<Found, QuickstartError> {
    if session.choices.dry_run {
        return Ok(Found::Later(file));
    }
    let secret = session.person.credential(provider.as_str(), &sources(provider, &session.engine))?;
    Ok(Found::Kept { secret, file })
}

/// The ways to give a credential, for a message.
fn sources(provider: ProviderChoice, engine: &EngineName) -> String {
    let variable = provider.variable().map(|name| format!("set {name}, or ")).unwrap_or_default();
    format!(
        "{variable}name a source: herma quickstart {engine} --key-file FILE (or --key-env NAME, --key-command COMMAND)"
    )
}

/// The first line of what a command prints.
fn output_of(session: &Session<'_>, command: &str) -> Result<Secret<String>, QuickstartError> {
    let settings = session.installation.settings();
    let shell = Tool::at("sh", PathBuf::from(SHELL));
    let bad =
        |why: String| QuickstartError::bad(why, "run it yourself to see why; it has HOME and PATH only");
    let output = shell
        .call()
        .args(["-c", command])
        .env("HOME", settings.user_home.as_os_str())
        .env("PATH", settings.search_path.clone())
        .output()
        .map_err(|error| bad(error.to_string()))?;
    if !output.status.success() {
        return Err(bad(format!("the command of --key-command ended with {}", output.status)));
    }
    let text = String::from_utf8(output.stdout);
    let text = text.map_err(|_| bad("the command of --key-command printed no text".to_owned()))?;
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Ok(Secret::new(line.to_owned())),
        None => Err(bad("the command of --key-command printed nothing".to_owned())),
    }
}
