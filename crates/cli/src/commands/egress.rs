//! `herma egress`: what runs may reach besides their model.

mod change;
mod test;

use std::process::ExitCode;

use herma_api::read_contract;
use herma_core::Contract;
use herma_harness::Installation;
use herma_trust::{EgressError, EgressProposal, InstallationList, KnownGrant};

use crate::args;
use crate::commands::{Ended, find_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{EgressLearnedOutput, EgressOutput, GrantItem};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn egress(command: &args::Egress, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        args::Egress::Show { contract } => show(contract.as_deref(), &installation, screen),
        args::Egress::Test(args) => test::test(args, &installation, screen),
        args::Egress::Learned { run } => learned(run.as_deref(), &installation, screen),
        args::Egress::Adopt(args) => change::adopt(args, &installation, screen),
        args::Egress::Sign(args) => change::sign(args, &installation, environment, screen),
        args::Egress::Grant(args) => change::grant(args, &installation, environment, screen),
        args::Egress::Revoke { id } => change::revoke(id, &installation, screen),
    }
}

/// The contract that was named, if one was.
fn named(contract: Option<&str>, installation: &Installation) -> Result<Option<Contract>, Failure> {
    let read = contract.map(|contract| read_contract(contract, installation.settings())).transpose()?;
    Ok(read.map(|read| read.contract))
}

fn show(contract: Option<&str>, installation: &Installation, screen: &Screen) -> Ended {
    let contract = named(contract, installation)?;
    let of_run = installation.egress_of(contract.as_ref())?;
    if screen.is_json() {
        screen.value(&EgressOutput {
            schema: "herma.egress/v1",
            contract: contract.map(|_| of_run.contract.clone()),
            installation: (&of_run.list).into(),
            grants: of_run.grants.iter().map(Into::into).collect(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if contract.is_some() {
        screen.line("by the contract");
        show_hosts(&of_run.contract, screen);
    }
    show_list(&of_run.list, screen);
    screen.line("by grants");
    if of_run.grants.is_empty() {
        screen.line("  none");
    }
    for known in &of_run.grants {
        show_grant(known, screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn show_hosts(hosts: &[String], screen: &Screen) {
    if hosts.is_empty() {
        screen.line("  none");
    }
    for host in hosts {
        screen.line(format_args!("  {}", safe_line(host)));
    }
}

fn show_list(list: &InstallationList, screen: &Screen) {
    match &list.signed {
        None => screen.line("by the installation's list"),
        Some(signed) => {
            let serial =
                signed.serial.map_or_else(|| "never signed".to_owned(), |serial| format!("number {serial}"));
            screen
                .line(format_args!("by the installation's list, to be signed by {} ({serial})", signed.name));
        }
    }
    show_hosts(&list.hosts, screen);
    for host in &list.unsigned {
        screen.line(format_args!(
            "  {}  {}",
            safe_line(host),
            screen.paint(Tone::Warn, "not signed, does not count")
        ));
    }
    if let Some(problem) = &list.problem {
        screen.line(format_args!(
            "  {} {}",
            screen.paint(Tone::Bad, "new runs are blocked:"),
            safe_line(problem)
        ));
    }
}

fn show_grant(known: &KnownGrant, screen: &Screen) {
    let GrantItem { id, hosts, reason, by, expires, state, detail, .. } = known.into();
    let tone = if state == "holds" { Tone::Good } else { Tone::Dim };
    let by = by.unwrap_or_else(|| "nobody who is trusted".to_owned());
    screen.line(format_args!("  {id}  {}  until {expires}, by {by}", screen.paint(tone, state)));
    screen.line(format_args!("    {}: {}", safe_line(&hosts.join(", ")), safe_line(&reason)));
    if let Some(detail) = detail {
        screen.line(format_args!("    {}", safe_line(&detail)));
    }
}

fn learned(run: Option<&str>, installation: &Installation, screen: &Screen) -> Ended {
    let files = installation.egress();
    let proposals: Vec<EgressProposal> = match run {
        Some(named) => vec![files.proposal(find_run(installation, named)?.0.run_id)?],
        None => files.proposals()?,
    };
    if screen.is_json() {
        screen.value(&EgressLearnedOutput { schema: "herma.egress-learned/v1", proposals })?;
        return Ok(ExitCode::SUCCESS);
    }
    if proposals.is_empty() {
        screen.line("no run has learned anything; `herma run CONTRACT --egress learn` does, at stage 2");
    }
    for proposal in &proposals {
        screen.line(format_args!("{}  {}", proposal.run_id, proposal.contract_id));
        show_hosts(&proposal.hosts, screen);
        let run = proposal.run_id.short();
        screen.line(format_args!("  next: `herma egress adopt {run}` lets every run reach them"));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<EgressError> for Failure {
    fn from(error: EgressError) -> Self {
        let error = match error {
            EgressError::Trust(error) => return error.into(),
            error => error,
        };
        match &error {
            EgressError::Io { .. } | EgressError::Record(_) => Self::internal(error),
            EgressError::Line { .. } => {
                Self::bad_input(error).hint("docs/egress.md says how entries are written")
            }
            EgressError::OtherSigner { .. } => {
                Self::bad_input(error).hint("say who signs with --approver NAME")
            }
            EgressError::NotRequired => {
                Self::bad_input(error).hint("it counts as it is; `herma egress show`")
            }
            _ => Self::bad_input(error),
        }
    }
}
