//! From a request to an outbound connection: list, quotas, resolver, addresses, in this order. An address in the request
//! itself is checked first: no list could allow it, and the client learns so.

use std::net::{IpAddr, SocketAddr};

use herma_core::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use super::connect::ConnectError;
use super::shared::{Denial, Shared};
use crate::addresses::{BadAnswers, Checked};
use crate::host::Host;
use crate::reason::{Fault, Reason};
use crate::rules::EgressRequest;

/// An outbound connection for an allowed request. No byte has passed.
pub(super) struct Open {
    pub(super) server: TcpStream,
    /// The checked address.
    pub(super) address: SocketAddr,
    pub(super) rule: Option<String>,
    pub(super) until: Option<Timestamp>,
    /// Held as long as the tunnel is open.
    pub(super) _permit: OwnedSemaphorePermit,
}

pub(super) async fn open(shared: &Shared, asked: &EgressRequest) -> Result<Open, Denial> {
    if let Host::Address(address) = asked.host {
        checked(shared, &[address], asked.port)?;
    }
    let listed = shared.listed(asked)?;
    if !shared.has_bytes() {
        return Err(Denial::denied(Reason::ByteQuota));
    }
    let permit = shared.tunnel_permit()?;
    let answers = answers(shared, &asked.host).await?;
    let checked = checked(shared, &answers, asked.port)?;
    let (server, address) = connect(shared, &checked, asked.port).await?;
    Ok(Open { server, address, rule: listed.rule, until: listed.until, _permit: permit })
}

/// The addresses, if every one of them is allowed.
fn checked(shared: &Shared, answers: &[IpAddr], port: u16) -> Result<Checked, Denial> {
    Checked::check_for(answers, shared.own_network).map_err(|bad| match bad {
        BadAnswers::None => Denial::failed(Fault::Unresolved),
        BadAnswers::TooMany => Denial::denied(Reason::TooManyAddresses),
        BadAnswers::Refused { address, kind } => Denial::denied(Reason::PrivateAddress)
            .because(format!("it leads to a {kind} address"))
            .at(SocketAddr::new(address, port)),
    })
}

/// The addresses of a host. A name is resolved here and nowhere else.
async fn answers(shared: &Shared, host: &Host) -> Result<Vec<IpAddr>, Denial> {
    let name = match host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    match timeout(shared.limits.resolve, shared.resolver.resolve(name)).await {
        Ok(Ok(answers)) => Ok(answers),
        Ok(Err(_)) => Err(Denial::failed(Fault::Unresolved)),
        Err(_) => Err(Denial::failed(Fault::SlowResolver)),
    }
}

/// Tries the addresses one after the other. Each gets its share of the time, so that a silent one leaves some for the
/// next.
async fn connect(shared: &Shared, checked: &Checked, port: u16) -> Result<(TcpStream, SocketAddr), Denial> {
    let began = Instant::now();
    let targets = checked.targets(port);
    let mut fault = Fault::Unreachable;
    for (done, target) in targets.iter().enumerate() {
        let tries_left = u32::try_from(targets.len() - done).unwrap_or(1);
        let share = shared.limits.connect.saturating_sub(began.elapsed()) / tries_left;
        match timeout(share, shared.connector.connect(*target)).await {
            Ok(Ok(server)) => {
                // Without it small messages wait for the other side's acknowledgement.
                let _ = server.set_nodelay(true);
                return Ok((server, target.address()));
            }
            Ok(Err(ConnectError::Own(_))) => {
                return Err(Denial::denied(Reason::OwnAddress).at(target.address()));
            }
            Ok(Err(ConnectError::Io(_))) => {}
            Err(_) => fault = Fault::SlowConnect,
        }
    }
    Err(Denial::failed(fault))
}
