//! `herma approvals`: requests, shows, grants and denies approvals of one exact contract.

mod request;
mod rule;
mod sheet;

use std::process::ExitCode;

use herma_api::{approval_rows, find_approval};
use herma_core::Clock as _;
use herma_core::approval::ApprovalState;
use herma_harness::{Installation, SystemClock, settle_used};
use herma_trust::ApprovalError;

pub(crate) use self::request::no_secret;
use self::sheet::Sheet;
use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::ApprovalsOutput;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn approvals(command: &args::Approvals, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    settle_used(&installation)?;
    installation.store.call(|store| store.expire_approvals(SystemClock.now()))?;
    match command {
        args::Approvals::Request(args) => request::request(args, &installation, environment, screen),
        args::Approvals::List(args) => list(args, &installation, screen),
        args::Approvals::Show(args) => {
            let approval = find_approval(&installation, &args.id)?;
            let sheet = Sheet::new(&installation, approval)?;
            if args.copy { sheet.copy(screen) } else { sheet.finish(screen) }
        }
        args::Approvals::Grant(args) => rule::grant(args, &installation, environment, screen),
        args::Approvals::Deny(args) => rule::deny(args, &installation, environment, screen),
    }
}

fn list(args: &args::ListApprovals, installation: &Installation, screen: &Screen) -> Ended {
    let rows = approval_rows(installation, args.all, args.limit)?;
    if screen.is_json() {
        screen.value(&ApprovalsOutput { schema: "herma.approvals/v1", approvals: rows })?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        let open = if args.all { "" } else { " that can be granted or used; `--all` lists the others" };
        screen.line(format_args!("no approvals{open}"));
    }
    for row in rows {
        // Pads by hand: the colour's escapes would count.
        let pad = " ".repeat(9_usize.saturating_sub(row.state.as_str().len()));
        screen.line(format_args!(
            "{}  {}{pad} stage {}  {:24} {:8} {}  until {}",
            row.approval_id.short(),
            screen.paint(tone(row.state), row.state.as_str()),
            row.stage,
            row.contract_id.as_str(),
            row.engine.as_str(),
            safe_line(&row.target),
            row.expires_at.strftime("%Y-%m-%d %H:%M:%SZ"),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn tone(state: ApprovalState) -> Tone {
    match state {
        ApprovalState::Requested => Tone::Warn,
        ApprovalState::Granted => Tone::Good,
        ApprovalState::Denied | ApprovalState::Expired => Tone::Bad,
        ApprovalState::Consumed => Tone::Dim,
    }
}

impl From<ApprovalError> for Failure {
    fn from(error: ApprovalError) -> Self {
        match error {
            ApprovalError::NotNeeded(_) => Self::bad_input(error).hint("run the contract with `herma run`"),
            ApprovalError::NotReady(ref missing) => {
                let next = safe_line(&missing.next_step);
                Self::blocked(safe_line(&error.to_string())).hint(next)
            }
            ApprovalError::Unsigned => Self::bad_input(error).hint("say who asks with --approver NAME"),
            ApprovalError::SamePerson(_) => Self::bad_input(error).hint("another approver has to rule on it"),
            ApprovalError::Final { state, .. } => Self::blocked(error).hint(match state {
                ApprovalState::Granted => "`herma run` uses it, once",
                _ => "ask for a new one with `herma approvals request`",
            }),
            ApprovalError::Early { .. } => {
                Self::blocked(error).hint("set the clock right, or ask anew with `herma approvals request`")
            }
            ApprovalError::Unknown(_) => {
                Self::bad_input(error).hint("`herma approvals list --all` lists the names")
            }
            ApprovalError::Store(error) => error.into(),
            ApprovalError::Trust(error) => error.into(),
            ApprovalError::Sign(_) | ApprovalError::Random(_) => Self::internal(error),
        }
    }
}
