//! `herma approvals request`.

use herma_api::{read_contract, resolve_destination};
use herma_harness::{Installation, Order, ask};
use herma_trust::approvals::Asker;
use herma_trust::{ApprovalError, not_too_long};

use super::sheet::Sheet;
use crate::args;
use crate::commands::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::unlock::unlock;

pub(super) fn request(
    args: &args::RequestApproval,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let read = read_contract(&args.contract, installation.settings())?;
    let stage = read.contract.terms.stage;
    if !stage.needs_approval() {
        // Before anybody types a passphrase for it.
        return Err(ApprovalError::NotNeeded(stage).into());
    }
    // A request that cannot be shown is not made.
    for (text, what) in [(read.contract.terms.title.as_str(), "title"), (args.reason.as_str(), "reason")] {
        not_too_long(text, what).map_err(Failure::bad_input)?;
    }
    no_secret(args.reason.as_str())?;
    let order = Order {
        destination: resolve_destination(args.destination.map(Into::into), installation, &read)?,
        contract: read.contract,
        contract_text: read.text,
        contract_dir: read.dir,
        engine: args.engine.clone(),
        script: None,
        keep_workspace: false,
        egress: herma_core::egress::EgressMode::Strict,
        resumes: None,
        fault: None,
    };
    let signs = installation.operator.separation_of_duties || args.unlock.approver.is_some();
    let approver = signs.then(|| unlock(&args.unlock, installation, environment, screen)).transpose()?;
    let asker = approver.as_ref().map_or_else(|| Asker::User(environment.user.clone()), Asker::Approver);
    let approval = ask(installation, &order, args.reason.as_str(), &asker)?;
    Sheet::new(installation, approval)?.finish(screen)
}

/// A reason goes into records that stay.
pub(crate) fn no_secret(reason: &str) -> Result<(), Failure> {
    match herma_evidence::secrets::scan(reason.as_bytes()).first() {
        None => Ok(()),
        Some(finding) => {
            Err(Failure::bad_input(format!("the reason holds what looks like a secret ({})", finding.rule))
                .hint("take it out: a reason goes into records that stay"))
        }
    }
}
