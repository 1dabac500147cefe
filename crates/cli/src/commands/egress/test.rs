//! `herma egress test`: what would be decided about a host.

use std::process::ExitCode;

use herma_core::Clock as _;
use herma_core::visible::visible_line;
use herma_egress::rehearsal::{Rehearsed, rehearse};
use herma_egress::rules::{EgressRequest, Method, RequestKind};
use herma_egress::{EgressVerdict, Host};
use herma_harness::{Installation, SystemClock};
use herma_trust::AllowedBy;

use super::named;
use crate::args;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::EgressTestOutput;
use crate::screen::{Screen, Tone, safe_line};

pub(super) fn test(args: &args::EgressTest, installation: &Installation, screen: &Screen) -> Ended {
    let asked = asked(args)?;
    let contract = named(args.contract.as_deref(), installation)?;
    let of_run = installation.egress_of(contract.as_ref())?;
    let now = SystemClock.now();
    let said = rehearse(&of_run.allowlist(now), &asked, now, !args.offline);
    let allowed_by = of_run.allowed_by(&asked, now);
    let passes = said.verdict == EgressVerdict::Allowed;
    show(&output(&asked, said, allowed_by), screen)?;
    Ok(ExitCode::from(u8::from(!passes)))
}

/// The request to decide: a tunnel, or plain HTTP where the host begins with `http://`.
fn asked(args: &args::EgressTest) -> Result<EgressRequest, Failure> {
    let (kind, usual, host) = match args.host.strip_prefix("http://") {
        None => (RequestKind::Tunnel, 443, args.host.as_str()),
        Some(host) => {
            let method = Method::of(&args.method).ok_or_else(|| {
                let known: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
                Failure::bad_input(format!("`{}` is no method that passes", visible_line(&args.method)))
                    .hint(format!("one of {}", known.join(", ")))
            })?;
            (RequestKind::Plain(method), 80, host)
        }
    };
    let (host, port) = Host::parse_with_port(host).map_err(|bad| {
        Failure::bad_input(format!("`{}`: {bad}", visible_line(&args.host)))
            .hint("write `example.org`, `example.org:8443` or `http://example.org`")
    })?;
    Ok(EgressRequest { host, port: port.unwrap_or(usual), kind })
}

fn output(asked: &EgressRequest, said: Rehearsed, allowed_by: Option<AllowedBy>) -> EgressTestOutput {
    let (verdict, reason, next_step) = match said.verdict {
        EgressVerdict::Allowed => ("allowed", None, None),
        EgressVerdict::Denied(reason) => ("denied", Some(reason.code()), Some(reason.next_step())),
        EgressVerdict::Failed(fault) => ("failed", Some(fault.code()), None),
    };
    EgressTestOutput {
        schema: "herma.egress-test/v1",
        host: asked.host.to_string(),
        port: asked.port,
        method: asked.kind.method().to_owned(),
        verdict,
        reason,
        rule: said.rule,
        allowed_by: allowed_by.map(|allowed| match allowed {
            AllowedBy::Contract => "contract".to_owned(),
            AllowedBy::Installation => "installation".to_owned(),
            AllowedBy::Grant(id) => format!("grant {id}"),
        }),
        until: said.until,
        addresses: said.addresses.iter().map(ToString::to_string).collect(),
        detail: said.detail,
        next_step,
    }
}

fn show(output: &EgressTestOutput, screen: &Screen) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.value(output);
    }
    let tone = if output.verdict == "allowed" { Tone::Good } else { Tone::Bad };
    let reason = output.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let verdict = screen.paint(tone, output.verdict);
    screen.line(format_args!("{verdict}  {} {}:{}{reason}", output.method, output.host, output.port));
    if let (Some(rule), Some(by)) = (&output.rule, &output.allowed_by) {
        screen.line(format_args!("  rule     {} ({by})", safe_line(rule)));
    }
    if let Some(until) = output.until {
        screen.line(format_args!("  until    {until}"));
    }
    if !output.addresses.is_empty() {
        screen.line(format_args!("  leads to {}", output.addresses.join(", ")));
    }
    if !output.detail.is_empty() {
        screen.line(format_args!("  because  {}", safe_line(&output.detail)));
    }
    if let Some(next) = output.next_step {
        screen.line(format_args!("  next: {next}"));
    }
    Ok(())
}
