//! Addresses to listen on, and the listeners bound there.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use herma_net::{Address, Listener, Stream, stopped};
use tokio::sync::{Semaphore, watch};

use super::shared::Shared;
use super::{connection, metrics};

/// Where a proxy listens. Other machines never reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A socket in the file system, for its owner only.
    Unix(PathBuf),
    /// A port on the loopback of IPv4; 0 lets the kernel choose.
    Loopback(u16),
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(port) => write!(f, "127.0.0.1:{port}"),
        }
    }
}

impl Listen {
    fn address(&self) -> Address {
        match self {
            Self::Unix(path) => Address::Unix(path.clone()),
            Self::Loopback(port) => Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, *port))),
        }
    }
}

impl From<Address> for Listen {
    fn from(address: Address) -> Self {
        match address {
            Address::Unix(path) => Self::Unix(path),
            Address::Tcp(address) => Self::Loopback(address.port()),
        }
    }
}

/// The role of the clients of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The run, whose requests are decided on.
    Client,
    /// The operator, who reads the metrics.
    Operator,
}

/// Binds a listener. Gives it with its address, in which the kernel may have chosen the port.
pub(super) async fn bind(listen: &Listen) -> io::Result<(Listener, Listen)> {
    let listener = Listener::bind(&listen.address()).await?;
    let bound = listener.address()?.into();
    Ok((listener, bound))
}

/// Serves a listener until the proxy stops, and every connection until then at the longest.
pub(super) async fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
    role: Role,
) {
    let handle = |stream: Stream| {
        let (shared, own, mut stop) = (shared.clone(), stop.clone(), stop.clone());
        async move {
            let serve = async {
                match role {
                    Role::Client => connection::serve(shared, stream).await,
                    Role::Operator => metrics::serve(shared, stream, own).await,
                }
            };
            tokio::select! {
                () = serve => {}
                () = stopped(&mut stop) => {}
            }
        }
    };
    listener.serve(permits, stop.clone(), handle).await;
}
