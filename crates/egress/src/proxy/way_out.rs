//! From what is asked to an open connection: list, quotas, resolver, addresses, in this order. An address that stands in
//! the request itself is looked at first: no list would help it, and who asks is told so.

use std::net::{IpAddr, SocketAddr};

use herma_core::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use super::connect::ConnectError;
use super::shared::{No, Shared};
use crate::addresses::{BadAnswers, Checked};
use crate::host::Host;
use crate::reason::{Fault, Reason};
use crate::rules::Asked;

/// A connection to where a request may go. No byte has passed.
pub(super) struct Open {
    pub(super) server: TcpStream,
    /// Where it goes, as it was checked.
    pub(super) address: SocketAddr,
    pub(super) rule: Option<String>,
    pub(super) until: Option<Timestamp>,
    /// Held as long as the tunnel is open.
    pub(super) _place: OwnedSemaphorePermit,
}

pub(super) async fn open(shared: &Shared, asked: &Asked) -> Result<Open, No> {
    if let Host::Address(address) = asked.host {
        checked(shared, &[address], asked.port)?;
    }
    let listed = shared.listed(asked)?;
    if !shared.has_bytes() {
        return Err(No::denied(Reason::ByteQuota));
    }
    let place = shared.place()?;
    let answers = answers(shared, &asked.host).await?;
    let checked = checked(shared, &answers, asked.port)?;
    let (server, address) = connect(shared, &checked, asked.port).await?;
    Ok(Open { server, address, rule: listed.rule, until: listed.until, _place: place })
}

/// The addresses, if all of them may be connected to.
fn checked(shared: &Shared, answers: &[IpAddr], port: u16) -> Result<Checked, No> {
    Checked::check_for(answers, shared.own_network).map_err(|bad| match bad {
        BadAnswers::None => No::failed(Fault::Unresolved),
        BadAnswers::TooMany => No::denied(Reason::TooManyAddresses),
        BadAnswers::Refused { address, kind } => No::denied(Reason::PrivateAddress)
            .because(format!("it leads to a {kind} address"))
            .at(SocketAddr::new(address, port)),
    })
}

/// The addresses of a host. A name is resolved here and nowhere else.
async fn answers(shared: &Shared, host: &Host) -> Result<Vec<IpAddr>, No> {
    let name = match host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    match timeout(shared.limits.resolve, shared.resolver.resolve(name)).await {
        Ok(Ok(answers)) => Ok(answers),
        Ok(Err(_)) => Err(No::failed(Fault::Unresolved)),
        Err(_) => Err(No::failed(Fault::SlowResolver)),
    }
}

/// Tries the addresses one after the other. Each has its share of the time, so that one that is silent leaves some for
/// the next.
async fn connect(shared: &Shared, checked: &Checked, port: u16) -> Result<(TcpStream, SocketAddr), No> {
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
            Ok(Err(ConnectError::Own(_))) => return Err(No::denied(Reason::OwnAddress).at(target.address())),
            Ok(Err(ConnectError::Io(_))) => {}
            Err(_) => fault = Fault::SlowConnect,
        }
    }
    Err(No::failed(fault))
}
