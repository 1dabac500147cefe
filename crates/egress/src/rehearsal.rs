//! The decision about a request without a connection, for a person who asks.

use std::net::IpAddr;
use std::time::Duration;

use herma_core::Timestamp;

use crate::addresses::{BadAnswers, Checked};
use crate::decision::EgressVerdict;
use crate::host::{Host, Name};
use crate::reason::{Fault, Reason};
use crate::resolver::{Resolve as _, System};
use crate::rules::{Allowlist, EgressRequest, Listing};

/// The timeout of the resolver.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The decision that the proxy would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsed {
    /// Whether it would pass, as far as that is known before a connection.
    pub verdict: EgressVerdict,
    /// The rule that allows it.
    pub rule: Option<String>,
    /// The end of that rule, if it has one.
    pub until: Option<Timestamp>,
    /// The addresses of the name, if it was resolved.
    pub addresses: Vec<IpAddr>,
    /// More about the reason.
    pub detail: String,
}

/// Decides as a proxy would, up to the connection. Without `resolve` the name is not asked for.
#[must_use]
pub fn rehearse(allowlist: &Allowlist, asked: &EgressRequest, now: Timestamp, resolve: bool) -> Rehearsed {
    let said = |verdict| Rehearsed {
        verdict,
        rule: None,
        until: None,
        addresses: Vec::new(),
        detail: String::new(),
    };
    if let Host::Address(address) = asked.host
        && let Err(BadAnswers::Refused { address, kind }) = Checked::check(&[address])
    {
        // Before the list, which could not help.
        let detail = format!("{address} is a {kind} address");
        return Rehearsed { detail, ..said(EgressVerdict::Denied(Reason::PrivateAddress)) };
    }
    let (rule, until) = match allowlist.decide(asked, now).listing {
        Listing::Allowed { rule, until } => (Some(rule), until),
        Listing::Denied(reason) => return said(EgressVerdict::Denied(reason)),
    };
    let listed = |verdict| Rehearsed { rule, until, ..said(verdict) };
    let answers = match &asked.host {
        Host::Address(address) => Ok(vec![*address]),
        Host::Name(_) if !resolve => return listed(EgressVerdict::Allowed),
        Host::Name(name) => resolved(name),
    };
    let addresses = match answers {
        Ok(addresses) => addresses,
        Err(fault) => return listed(EgressVerdict::Failed(fault)),
    };
    let (verdict, detail) = match Checked::check(&addresses) {
        Ok(_) => (EgressVerdict::Allowed, String::new()),
        Err(BadAnswers::None) => (EgressVerdict::Failed(Fault::Unresolved), String::new()),
        Err(BadAnswers::TooMany) => (EgressVerdict::Denied(Reason::TooManyAddresses), String::new()),
        Err(BadAnswers::Refused { address, kind }) => {
            (EgressVerdict::Denied(Reason::PrivateAddress), format!("{address} is a {kind} address"))
        }
    };
    Rehearsed { addresses, detail, ..listed(verdict) }
}

/// Asks the system's resolver, in a bounded time.
fn resolved(name: &Name) -> Result<Vec<IpAddr>, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|_| Fault::Unresolved)?;
    let system = System::default();
    let answers =
        runtime.block_on(async { tokio::time::timeout(RESOLVE_TIMEOUT, system.resolve(name)).await });
    // A resolver that hangs is not waited for.
    runtime.shutdown_background();
    match answers {
        Ok(Ok(answers)) => Ok(answers),
        Ok(Err(_)) => Err(Fault::Unresolved),
        Err(_) => Err(Fault::SlowResolver),
    }
}
