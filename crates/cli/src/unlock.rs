//! Opens an approver's key: a token from the environment, or a passphrase from a file or from a person. A passphrase is
//! never an argument, where every process of the machine could read it.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use herma_core::approver::{ApproverName, Custody};
use herma_core::secret::Secret;
use herma_harness::Installation;
use herma_trust::{Approver, ApproverError, Approvers};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::typed;

/// The longest passphrase that is read.
const MAX_PASSPHRASE_BYTES: u64 = 4 << 10;

/// The signer and the source of the passphrase.
#[derive(Clone, Debug, Default, Args)]
pub struct UnlockArgs {
    /// The approver who signs; the one of `HERMA_APPROVER_TOKEN` otherwise, or the only one with a passphrase
    #[arg(long, value_name = "NAME")]
    pub approver: Option<ApproverName>,
    /// A file whose first line is the passphrase; asked for on the terminal otherwise
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
}

/// Checks that somebody can sign, before a person reads a record and types its code.
pub(crate) fn require_approver(
    args: &UnlockArgs,
    installation: &Installation,
    environment: &Environment,
) -> Result<(), Failure> {
    if args.approver.is_some() || environment.approver_token.is_some() {
        return Ok(());
    }
    only_one(&installation.approvers()).map(drop)
}

/// Opens the key of the approver who signs.
pub(crate) fn unlock(
    args: &UnlockArgs,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Result<Approver, Failure> {
    unlock_among(&installation.approvers(), args, environment, screen)
}

/// The same among these approvers.
pub(crate) fn unlock_among(
    approvers: &Approvers,
    args: &UnlockArgs,
    environment: &Environment,
    screen: &Screen,
) -> Result<Approver, Failure> {
    // Arguments precede the environment.
    if let Some(token) = &environment.approver_token
        && args.approver.is_none()
        && args.passphrase_file.is_none()
    {
        return Ok(approvers.from_token(token.expose())?);
    }
    let name = match &args.approver {
        Some(name) => name.clone(),
        None => only_one(approvers)?,
    };
    let passphrase = passphrase_of(&name, args.passphrase_file.as_deref(), screen)?;
    Ok(approvers.unlock(&name, &passphrase)?)
}

/// The passphrase of an existing key.
fn passphrase_of(
    name: &ApproverName,
    file: Option<&Path>,
    screen: &Screen,
) -> Result<Secret<String>, Failure> {
    match file {
        Some(file) => read(file),
        None => ask(&format!("Passphrase of {name} (it is not shown):"), screen),
    }
}

/// A passphrase for a new key: from the file, or typed twice.
pub(crate) fn new_passphrase(
    name: &ApproverName,
    file: Option<&Path>,
    screen: &Screen,
) -> Result<Secret<String>, Failure> {
    if let Some(file) = file {
        return read(file);
    }
    let first = ask(&format!("New passphrase for {name} (it is not shown):"), screen)?;
    let second = ask("Repeat passphrase:", screen)?;
    if first.expose() == second.expose() {
        Ok(first)
    } else {
        Err(Failure::bad_input("the two passphrases differ; nothing was done"))
    }
}

/// Without a name it is the only approver who can sign.
fn only_one(approvers: &Approvers) -> Result<ApproverName, Failure> {
    let mut can = approvers.all()?;
    can.retain(|known| known.record.custody == Custody::Passphrase && known.trusted().is_ok());
    match &can[..] {
        [one] => Ok(one.record.name.clone()),
        [] => Err(Failure::bad_input("there is no approver with a passphrase").hint(
            "`herma approver init NAME` makes one; automation sets HERMA_APPROVER_TOKEN; `herma approver list` \
             shows who is there",
        )),
        many => {
            let names: Vec<_> = many.iter().map(|known| known.record.name.as_str()).collect();
            Err(Failure::bad_input("more than one approver could sign")
                .hint(format!("say who you are with --approver: {}", names.join(", "))))
        }
    }
}

/// The first line of a file.
fn read(file: &Path) -> Result<Secret<String>, Failure> {
    let text = || {
        let mut text = String::new();
        File::open(file)?.take(MAX_PASSPHRASE_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = text().map_err(|e: io::Error| {
        Failure::bad_input(format!("the passphrase file {} cannot be read: {e}", file.display()))
    })?;
    first_line(&text)
}

/// Reads a line from the terminal without echo.
fn ask(prompt: &str, screen: &Screen) -> Result<Secret<String>, Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::bad_input("there is no terminal to type the passphrase at").hint(
            "run it in a terminal, name a file with --passphrase-file, or set HERMA_APPROVER_TOKEN for automation",
        ));
    }
    screen.note(prompt);
    first_line(&typed::hidden_line()?)
}

fn first_line(text: &str) -> Result<Secret<String>, Failure> {
    match text.lines().next().unwrap_or_default() {
        "" => Err(Failure::bad_input("the passphrase is empty; nothing was done")),
        line => Ok(Secret::new(line.to_owned())),
    }
}

impl From<ApproverError> for Failure {
    fn from(error: ApproverError) -> Self {
        let error = match error {
            ApproverError::Trust(error) => return error.into(),
            error => error,
        };
        let hint = match &error {
            ApproverError::Io { .. } | ApproverError::Malformed { .. } | ApproverError::Record(_) => {
                return Self::internal(error).hint("`herma approver list` reads every record");
            }
            ApproverError::NeedsIntroducer(_) => "name one with --by; `herma approver list` shows them",
            ApproverError::KeptElsewhere(_) => {
                "set HERMA_APPROVER_TOKEN to the token, and leave the name out"
            }
            ApproverError::UnknownToken => "is HERMA_APPROVER_TOKEN one of another installation?",
            ApproverError::Unknown(_) | ApproverError::Untrusted(_) => {
                "`herma approver list` shows who is trusted"
            }
            ApproverError::OtherKey(_) => "restore the key's file from a backup, or revoke the approver",
            ApproverError::NoReason => "say why with --reason TEXT",
            _ => return Self::bad_input(error),
        };
        Self::bad_input(error).hint(hint)
    }
}
