//! The addresses of the router.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::table::TableType;
use super::values::{Flaw, path_problem, text};

/// The longest path of a Unix socket, in bytes.
const MAX_SOCKET_BYTES: usize = 107;

const EXPECTED: &str = "expected `127.0.0.1:4000`, `[::1]:4000` or `unix:router.sock`";

/// The address of a router without `[listen]`.
pub(super) const DEFAULT: Address = Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000));

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// `[listen]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListenTable {
    pub(super) address: Spanned<WrittenAddress>,
    #[serde(default)]
    pub(super) public: bool,
}

impl TableType for ListenTable {
    const EXPECTING: &'static str = "`[listen]` with `address = \"127.0.0.1:4000\"` under it";
}

/// `[admin]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdminTable {
    pub(super) address: Spanned<WrittenAddress>,
}

impl TableType for AdminTable {
    const EXPECTING: &'static str = "`[admin]` with `address = \"unix:admin.sock\"` under it";
}

/// An address as it is written: the path of a socket may be relative to the configuration.
#[derive(Clone, Debug)]
pub(super) struct WrittenAddress(Address);

impl<'de> Deserialize<'de> for WrittenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "an address, like `127.0.0.1:4000` or `unix:router.sock`", |text| {
            let Some(path) = text.strip_prefix("unix:") else {
                let address = text.parse().map_err(|_| Flaw::new("is not an address", EXPECTED))?;
                return Ok(Self(Address::Tcp(address)));
            };
            match path_problem(path) {
                Some(problem) => Err(Flaw::new(problem, EXPECTED)),
                None => Ok(Self(Address::Unix(path.into()))),
            }
        })
    }
}

impl WrittenAddress {
    fn resolve(&self, base: &Path) -> Result<Address, Flaw> {
        let Address::Unix(path) = &self.0 else { return Ok(self.0.clone()) };
        let path = base.join(path);
        if path.as_os_str().len() > MAX_SOCKET_BYTES {
            let expected = format!("expected a path of at most {MAX_SOCKET_BYTES} bytes, with its directory");
            return Err(Flaw::new("is too long for a Unix socket", expected));
        }
        Ok(Address::Unix(path))
    }
}

impl ListenTable {
    /// Other machines reach it only with `public = true`.
    pub(super) fn resolve(&self, base: &Path) -> Result<Address, Flaw> {
        match self.address.get_ref().resolve(base)? {
            Address::Tcp(tcp) if !tcp.ip().is_loopback() && !self.public => Err(Flaw::new(
                "can be reached from other machines",
                "listen at a loopback address, or write `public = true` beside it",
            )),
            address => Ok(address),
        }
    }
}

impl AdminTable {
    /// A Unix socket: the permissions of its directory decide about access.
    pub(super) fn resolve(&self, base: &Path) -> Result<Address, Flaw> {
        match self.address.get_ref().resolve(base)? {
            Address::Tcp(_) => Err(Flaw::new(
                "is a port, which every program on the machine reaches",
                "expected a Unix socket, like `unix:admin.sock`",
            )),
            unix @ Address::Unix(_) => Ok(unix),
        }
    }
}
