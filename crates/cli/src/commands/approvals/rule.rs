//! `herma approvals grant` and `herma approvals deny`: a person's ruling, signed with their key.

use std::process::ExitCode;

use herma_api::find_approval;
use herma_core::Clock as _;
use herma_core::admission::Line;
use herma_core::approval::{Answer, Approval, ApprovalState};
use herma_harness::{Installation, SystemClock, rule};
use herma_trust::ApprovalError;

use super::request::no_secret;
use super::sheet::Sheet;
use crate::args;
use crate::commands::Ended;
use crate::confirm::confirm_with;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, Tone};
use crate::unlock::{UnlockArgs, unlock};

/// Asks for the code before the key, so that no approver unlocks a key for an unread packet.
pub(super) fn grant(
    args: &args::Grant,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let sheet = open_sheet(installation, &args.id, &args.reason)?;
    let packet = sheet.packet()?;
    if screen.is_json() && args.code.is_none() {
        // The packet and its code are the answer; nothing was granted.
        sheet.finish(screen)?;
        return Ok(ExitCode::from(Failure::BAD_INPUT));
    }
    sheet.show(screen);
    if !screen.is_json() {
        screen.line(format_args!("code      {}", screen.paint(Tone::Bold, packet.code())));
    }
    confirm_with(packet.code(), |typed| packet.is_code(typed), args.code.as_deref(), screen)?;
    let who = (&args.unlock, environment);
    rule_on(sheet.approval(), Answer::Granted, &args.reason, who, installation, screen)
}

/// A denial only takes away, so it needs no code.
pub(super) fn deny(
    args: &args::Deny,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let sheet = open_sheet(installation, &args.id, &args.reason)?;
    sheet.show(screen);
    let who = (&args.unlock, environment);
    rule_on(sheet.approval(), Answer::Denied, &args.reason, who, installation, screen)
}

/// The approval that is meant, if it still waits for an answer.
fn open_sheet(installation: &Installation, id: &str, reason: &Line) -> Result<Sheet, Failure> {
    no_secret(reason.as_str())?;
    let approval = find_approval(installation, id)?;
    let state = approval.state_at(SystemClock.now());
    if state != ApprovalState::Requested {
        return Err(ApprovalError::Final { id: approval.request.id, state }.into());
    }
    Sheet::new(installation, approval)
}

fn rule_on(
    approval: &Approval,
    answer: Answer,
    reason: &Line,
    (args, environment): (&UnlockArgs, &Environment),
    installation: &Installation,
    screen: &Screen,
) -> Ended {
    let approver = unlock(args, installation, environment, screen)?;
    let ruled = rule(installation, approval, answer, reason.as_str(), &approver)?;
    Sheet::new(installation, ruled)?.conclude(screen)
}
