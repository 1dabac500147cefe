//! Where the router is called.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::document::{Keys, Read, Value, path_problem};
use super::limits::or;

/// The longest path that the system takes for a socket.
const MOST_SOCKET_BYTES: usize = 107;

const EXPECTED: &str = "expected `127.0.0.1:4000`, `[::1]:4000` or `unix:router.sock`";

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A socket in the file system.
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

/// Where a router listens if nothing is said.
const DEFAULT: Address = Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000));

/// `[listen]`: others than this machine reach it only where that is said.
pub(super) fn listen(document: &mut Keys<'_, '_>) -> Read<Address> {
    // One that serves only runs of `herma run` listens at a socket of theirs.
    let Some(listen) = document.get("listen") else { return Ok(DEFAULT) };
    let mut keys = listen.keys("`[listen]` with `address = \"127.0.0.1:4000\"` under it")?;
    let address = keys.need("address", "`address = \"127.0.0.1:4000\"`");
    let public = or(keys.get("public"), false, Value::flag);
    keys.done();
    let value = address?;
    let address = read(&value)?;
    let public = public?;
    match address {
        Address::Tcp(tcp) if !tcp.ip().is_loopback() && !public => value.refuse(
            "can be reached from other machines",
            "listen at a loopback address, or write `public = true` beside it",
        ),
        address => Ok(address),
    }
}

/// `[admin]`: a socket in the file system, whose directory says who may call.
pub(super) fn admin(document: &mut Keys<'_, '_>) -> Read<Option<Address>> {
    let Some(admin) = document.get("admin") else { return Ok(None) };
    let mut keys = admin.keys("`[admin]` with `address = \"unix:admin.sock\"` under it")?;
    let address = keys.need("address", "`address = \"unix:admin.sock\"`");
    keys.done();
    let value = address?;
    match read(&value)? {
        Address::Tcp(_) => value.refuse(
            "is a port, which every program on the machine reaches",
            "expected a Unix socket, like `unix:admin.sock`",
        ),
        unix @ Address::Unix(_) => Ok(Some(unix)),
    }
}

fn read(value: &Value<'_, '_>) -> Read<Address> {
    let text = value.text("an address, like `127.0.0.1:4000` or `unix:router.sock`")?;
    let Some(path) = text.strip_prefix("unix:") else {
        return match text.parse() {
            Ok(address) => Ok(Address::Tcp(address)),
            Err(_) => value.refuse("is not an address", EXPECTED),
        };
    };
    if let Some(problem) = path_problem(path) {
        return value.refuse(problem, EXPECTED);
    }
    let path = value.base().join(path);
    if path.as_os_str().len() > MOST_SOCKET_BYTES {
        return value.refuse(
            "is too long for a Unix socket",
            format!("expected a path of at most {MOST_SOCKET_BYTES} bytes, with its directory"),
        );
    }
    Ok(Address::Unix(path))
}
