//! Connects to an address that was checked.

use std::io;
use std::net::IpAddr;

use tokio::net::TcpStream;

use super::own::is_own;
use crate::addresses::Target;
use crate::resolver::BoxFuture;

/// Makes connections.
pub trait Connect: Send + Sync {
    /// Connects to this address and to no other. The caller bounds the time.
    fn connect(&self, target: Target) -> BoxFuture<'_, Result<TcpStream, ConnectError>>;
}

/// There is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is one of this machine's.
    #[error("the address {0} is this machine's own")]
    Own(IpAddr),
    /// The network failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Connects by the system's own network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Connect for Direct {
    fn connect(&self, target: Target) -> BoxFuture<'_, Result<TcpStream, ConnectError>> {
        Box::pin(async move {
            let address = target.address();
            // A machine with a public address would reach what it serves to itself.
            if is_own(address)? {
                return Err(ConnectError::Own(address.ip()));
            }
            Ok(TcpStream::connect(address).await?)
        })
    }
}
