//! `herma approver`: creates, lists and revokes approvers.

use std::process::ExitCode;

use herma_core::Clock as _;
use herma_core::approver::Custody;
use herma_harness::{Installation, SystemClock};
use herma_trust::{Approver, Approvers, KnownApprover};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{ApproverItem, ApproverOutput, ApproversOutput};
use crate::screen::{Screen, Tone, safe_line};
use crate::unlock::{UnlockArgs, new_passphrase, unlock};

pub(crate) fn approver(command: &args::Approver, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        args::Approver::Init(args) => init(args, &installation, environment, screen),
        args::Approver::List => list(&installation.approvers(), screen),
        args::Approver::Revoke { name, reason, last } => {
            let (approvers, now) = (installation.approvers(), SystemClock.now());
            let known = if *last {
                approvers.revoke(name, reason, now)?
            } else {
                approvers.revoke_unless_last(name, reason, now)?
            };
            if screen.is_json() {
                show(&known, None, screen)?;
            } else {
                screen.line(format_args!("{name} is revoked: its signatures count no more"));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn init(
    args: &args::ApproverInit,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let approvers = installation.approvers();
    let introducer = introducer(args, installation, environment, screen)?;
    let (custody, passphrase) = if args.token {
        (Custody::Token, None)
    } else {
        let passphrase = new_passphrase(&args.name, args.passphrase_file.as_deref(), screen)?;
        (Custody::Passphrase, Some(passphrase))
    };
    let now = SystemClock.now();
    let (known, token) =
        approvers.init(&args.name, custody, passphrase.as_ref(), introducer.as_ref(), now)?;
    let token = token.as_ref().map(|token| token.expose().as_str());
    if screen.is_json() {
        show(&known, token, screen)?;
        return Ok(ExitCode::SUCCESS);
    }
    let record = &known.record;
    if introducer.is_some() {
        screen.line(format_args!("{} is an approver, introduced by {}", record.name, record.introduced_by));
    } else {
        screen.line(format_args!("{} is the first approver of this installation", record.name));
    }
    screen.line(format_args!("  key {}", record.key_id));
    if let Some(token) = token {
        screen.line(
            "The token is shown once and kept nowhere. Set HERMA_APPROVER_TOKEN to it where no agent runs:",
        );
        screen.line(token);
    } else {
        screen.line("The key is encrypted with this passphrase. It cannot be recovered.");
    }
    Ok(ExitCode::SUCCESS)
}

/// The approver who introduces the new one: the named one, else the one of the token. The first approver has none.
fn introducer(
    args: &args::ApproverInit,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Result<Option<Approver>, Failure> {
    let wanted = args.by.is_some() || args.by_passphrase_file.is_some();
    if !wanted && (environment.approver_token.is_none() || installation.approvers().all()?.is_empty()) {
        return Ok(None);
    }
    let by = UnlockArgs { approver: args.by.clone(), passphrase_file: args.by_passphrase_file.clone() };
    unlock(&by, installation, environment, screen).map(Some)
}

fn list(approvers: &Approvers, screen: &Screen) -> Ended {
    let all = approvers.all()?;
    if screen.is_json() {
        let approvers = all.iter().map(item).collect();
        screen.value(&ApproversOutput { schema: "herma.approvers/v1", approvers })?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        screen.line("no approvers yet; start with `herma approver init NAME`");
    }
    for known in &all {
        let record = &known.record;
        let custody = match record.custody {
            Custody::Passphrase => "passphrase",
            Custody::Token => "token",
        };
        screen.line(format_args!(
            "{:16} {custody:10} {}  introduced by {}",
            record.name.as_str(),
            record.key_id,
            record.introduced_by
        ));
        if let Err(why) = known.trusted() {
            screen.line(format_args!(
                "  {} {}",
                screen.paint(Tone::Bad, "not trusted:"),
                safe_line(&why.to_string())
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(known: &KnownApprover, token: Option<&str>, screen: &Screen) -> Result<(), Failure> {
    let token = token.map(str::to_owned);
    screen.value(&ApproverOutput { schema: "herma.approver-shown/v1", approver: item(known), token })
}

fn item(known: &KnownApprover) -> ApproverItem {
    let why_not = known.trusted().err().map(|why| why.to_string());
    ApproverItem {
        record: known.record.clone(),
        trusted: why_not.is_none(),
        why_not,
        revoked: known.revoked.clone(),
    }
}
