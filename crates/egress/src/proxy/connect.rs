//! Connects to an address that was checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use tokio::net::TcpStream;

use crate::addresses::Target;
use crate::resolver::Later;

/// Who makes connections.
pub trait Connect: Send + Sync {
    /// Connects to this address and to no other. The caller bounds the time.
    fn connect(&self, target: Target) -> Later<'_, Result<TcpStream, ConnectError>>;
}

/// There is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is one of this machine's.
    #[error("the address {0} is this machine's own")]
    Own(IpAddr),
    /// The network said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Connects by the system's own network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Connect for Direct {
    fn connect(&self, target: Target) -> Later<'_, Result<TcpStream, ConnectError>> {
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

/// Whether an address is this machine's. The system is asked which address it would send from; nothing is sent.
fn is_own(address: SocketAddr) -> io::Result<bool> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    Ok(socket.local_addr()?.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_known_as_its_own() {
        assert!(is_own("127.0.0.1:443".parse().unwrap()).unwrap());
        // Where there is no way to other addresses, there is no answer; never that it is this machine's.
        assert!(!is_own("1.1.1.1:443".parse().unwrap()).unwrap_or(false));
    }
}
