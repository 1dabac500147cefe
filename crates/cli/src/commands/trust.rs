//! `herma trust`: whether the records of trust are complete, and the chain of a home that had none.

use std::path::Path;
use std::process::ExitCode;

use herma_api::trust_chain_help;
use herma_harness::Installation;
use herma_trust::{Approvers, TrustError, adopt};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::TrustOutput;
use crate::screen::Screen;
use crate::unlock::{UnlockArgs, unlock_among};

pub(crate) fn trust(command: &args::Trust, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        args::Trust::Check { against } => check(&installation, against.as_deref(), screen),
        args::Trust::Adopt { unlock } => start(&installation, unlock, environment, screen),
    }
}

fn check(installation: &Installation, against: Option<&Path>, screen: &Screen) -> Ended {
    let (chain, witnesses) = installation.trust_log().audit()?;
    let (head, compared) = (chain.head(), against.map(|bundle| installation.trust_log().compare(bundle)));
    let compared = compared.transpose()?;
    if screen.is_json() {
        screen.value(&TrustOutput { schema: "herma.trust/v1", head, witnesses, compared })?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.line(format_args!("the trust chain holds: {} records, head {}", head.sequence, head.digest));
    screen.line(format_args!("{witnesses} bundles and signed admissions of this home agree with it"));
    if let Some(compared) = compared {
        screen.line(format_args!("the bundle agrees with it: it names record {}", compared.sequence));
    }
    Ok(ExitCode::SUCCESS)
}

fn start(
    installation: &Installation,
    args: &UnlockArgs,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let approvers = Approvers::before_chain(installation.trust_log().clone())?;
    if approvers.all()?.is_empty() {
        return Err(Failure::bad_input("there is nothing to adopt: this home has no approvers")
            .hint("start with `herma approver init NAME`"));
    }
    let approver = unlock_among(&approvers, args, environment, screen)?;
    let head = adopt(
        &installation.home,
        installation.trust_log(),
        &installation.store,
        &approver,
        installation.now(),
    )?;
    if screen.is_json() {
        screen.value(&TrustOutput { schema: "herma.trust/v1", head, witnesses: 0, compared: None })?;
    } else {
        screen.line(format_args!(
            "{} adopted this home: its trust chain has {} records, head {}",
            approver.name(),
            head.sequence,
            head.digest
        ));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        let next_step = trust_chain_help(&error).map(str::to_owned);
        let failure = match error {
            TrustError::Io { .. } | TrustError::Record(_) | TrustError::NoKey => Self::internal(error),
            TrustError::NotAdopted(_) | TrustError::Started { .. } => Self::bad_input(error),
            TrustError::Broken { .. }
            | TrustError::Changed
            | TrustError::RolledBack { .. }
            | TrustError::Missing => Self::blocked(error),
        };
        Self { next_step, ..failure }
    }
}
