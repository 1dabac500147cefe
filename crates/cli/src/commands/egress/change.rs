//! `herma egress adopt|sign|grant|revoke`: what changes what runs may reach.

use std::io::{IsTerminal as _, stdin};
use std::process::ExitCode;

use herma_core::{Clock as _, Timestamp};
use herma_egress::grants::Grant;
use herma_harness::{Installation, SystemClock};
use herma_trust::{InstallationList, KnownGrant};

use super::{show_grant, show_hosts, show_list};
use crate::args;
use crate::commands::approvals::no_secret;
use crate::commands::{Ended, find_run};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{EgressGrantOutput, EgressListOutput};
use crate::screen::Screen;
use crate::unlock::{UnlockArgs, unlock};

pub(super) fn adopt(args: &args::EgressAdopt, installation: &Installation, screen: &Screen) -> Ended {
    let files = installation.egress();
    let (run, _) = find_run(installation, &args.run)?;
    let proposal = files.proposal(run.run_id)?;
    if !args.yes {
        if !screen.is_json() {
            screen.line(format_args!("run {} reached these; every run could:", run.run_id));
            show_hosts(if args.hosts.is_empty() { &proposal.hosts } else { &args.hosts }, screen);
        }
        person_says_yes(screen)?;
    }
    let added = files.adopt(&proposal, &args.hosts)?;
    let list = files.list(installation.operator.egress_signed_by.as_ref(), &installation.approvers())?;
    let next =
        list.signed.as_ref().map(|signed| format!("have {} sign it: `herma egress sign`", signed.name));
    if !screen.is_json() {
        screen.line(format_args!("{} new on the installation's list", added.len()));
        show_hosts(&added, screen);
        if let Some(next) = next {
            screen.line(format_args!("next: {next}"));
        }
    }
    changed(added, &list, screen)
}

/// Continues only if a person types yes.
fn person_says_yes(screen: &Screen) -> Result<(), Failure> {
    if screen.is_json() || !stdin().is_terminal() {
        return Err(Failure::bad_input("there is no terminal to confirm at; nothing was done")
            .hint("look at what `herma egress learned` shows; if you mean it, add `--yes`"));
    }
    screen.note("Type yes to adopt them, anything else to stop:");
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(Failure::internal)?;
    match line.trim() {
        "yes" => Ok(()),
        _ => Err(Failure::bad_input("that is not yes; nothing was done")),
    }
}

pub(super) fn sign(
    args: &UnlockArgs,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    let required = installation.operator.egress_signed_by.as_ref();
    let (files, approvers) = (installation.egress(), installation.approvers());
    let before = files.list(required, &approvers)?;
    if !screen.is_json() {
        screen.line("what would be signed:");
        show_hosts(&files.draft()?.0, screen);
    }
    let args = UnlockArgs { approver: args.approver.clone().or_else(|| required.cloned()), ..args.clone() };
    // A token in the environment names its approver.
    let args = if environment.approver_token.is_some() { UnlockArgs::default() } else { args };
    let approver = unlock(&args, installation, environment, screen)?;
    let list = files.sign(required, &approvers, &approver, SystemClock.now())?;
    if !screen.is_json() {
        show_list(&list, screen);
    }
    let added = list.hosts.iter().filter(|host| !before.hosts.contains(host)).cloned().collect();
    changed(added, &list, screen)
}

fn changed(added: Vec<String>, list: &InstallationList, screen: &Screen) -> Ended {
    if screen.is_json() {
        let installation = list.into();
        screen.value(&EgressListOutput { schema: "herma.egress-list-changed/v1", added, installation })?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn grant(
    args: &args::EgressGrant,
    installation: &Installation,
    environment: &Environment,
    screen: &Screen,
) -> Ended {
    no_secret(args.reason.as_str())?;
    let made = SystemClock.now();
    let expires = made.checked_add(args.lasts.duration()).unwrap_or(Timestamp::MAX);
    // Before anybody types a passphrase for it.
    let grant = Grant::new(args.hosts.clone(), args.reason.as_str().to_owned(), made, expires);
    let grant = grant.map_err(Failure::bad_input)?;
    let approver = unlock(&args.unlock, installation, environment, screen)?;
    shown(&installation.egress().grant(grant, &approver)?, screen)
}

pub(super) fn revoke(id: &str, installation: &Installation, screen: &Screen) -> Ended {
    let known = installation.egress().revoke(id, &installation.approvers(), SystemClock.now())?;
    shown(&known, screen)
}

fn shown(known: &KnownGrant, screen: &Screen) -> Ended {
    if screen.is_json() {
        screen.value(&EgressGrantOutput { schema: "herma.egress-grant-shown/v1", grant: known.into() })?;
    } else {
        show_grant(known, screen);
    }
    Ok(ExitCode::SUCCESS)
}
