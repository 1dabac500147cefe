//! Whether an address is one of this machine's, as the kernel's routing tables say.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Constants of `linux/netlink.h` and `linux/rtnetlink.h`.
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;
const RTN_BROADCAST: u8 = 3;
const RTN_ANYCAST: u8 = 4;
const RTN_MULTICAST: u8 = 5;

/// The lengths of `struct nlmsghdr` and `struct rtmsg`, and where `rtm_type` is in a message.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const ROUTE_TYPE: usize = HEADER + 7;

/// Whether this machine itself receives what is sent to an address. The kernel is asked twice, and nothing is sent to
/// the address. An error means that there is no answer; the caller must not connect then.
pub(super) fn is_own(address: SocketAddr) -> io::Result<bool> {
    Ok(is_source(address)? || is_delivered_here(address.ip())?)
}

/// Whether packets to the address would also have it as their source.
fn is_source(address: SocketAddr) -> io::Result<bool> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    Ok(socket.local_addr()?.ip() == address.ip())
}

/// Whether the route to the address ends on this machine. This is so for every address of an interface: for a secondary
/// address too, which is not the source of packets to itself, and for a prefix that is routed to this machine as a whole.
fn is_delivered_here(address: IpAddr) -> io::Result<bool> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE
        None,
    )?;
    rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, &question(address.to_canonical()), SendFlags::empty())?;
    let mut reply = [0; 4096];
    // The kernel has answered when `send` returns.
    let (length, _) = rustix::net::recv(&socket, &mut reply, RecvFlags::DONTWAIT)?;
    match route_type(reply.get(..length).unwrap_or_default())? {
        RTN_UNICAST => Ok(false),
        RTN_LOCAL | RTN_BROADCAST | RTN_ANYCAST | RTN_MULTICAST => Ok(true),
        other => Err(io::Error::other(format!("the route to {address} has the type {other}"))),
    }
}

/// The message that asks for the route to an address.
fn question(address: IpAddr) -> Vec<u8> {
    let (family, bits, octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, 128, address.octets().to_vec()),
    };
    // Both fit: 36 or 48 bytes in all.
    let attribute = if bits == 32 { 8_u16 } else { 20 };
    let whole = if bits == 32 { 36_u32 } else { 48 };
    let [family, _] = family.as_raw().to_le_bytes();
    let mut message = Vec::new();
    message.extend(whole.to_ne_bytes());
    message.extend(RTM_GETROUTE.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // The sequence number, and the sender, which the kernel fills in.
    message.extend([0; 8]);
    let mut route = [0; ROUTE];
    (route[0], route[1]) = (family, bits);
    message.extend(route);
    message.extend(attribute.to_ne_bytes());
    message.extend(RTA_DST.to_ne_bytes());
    message.extend(octets);
    message
}

/// The type of the route in the kernel's reply, or the error that the reply is.
fn route_type(reply: &[u8]) -> io::Result<u8> {
    let unknown =
        || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer about a route is unknown");
    let kind = reply.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    match kind {
        Some(RTM_NEWROUTE) => reply.get(ROUTE_TYPE).copied().ok_or_else(unknown),
        Some(NLMSG_ERROR) => {
            let code = reply.get(HEADER..HEADER + 4).and_then(|bytes| bytes.try_into().ok());
            let code = code.map(i32::from_ne_bytes).filter(|code| *code < 0).ok_or_else(unknown)?;
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(address: &str) -> io::Result<bool> {
        is_own(SocketAddr::new(address.parse().unwrap(), 443))
    }

    #[test]
    fn an_address_of_this_machine_is_known_as_its_own() {
        assert!(own("127.0.0.1").unwrap());
        // Where there is no route to other addresses, there is no answer; never that it is this machine's.
        for other in ["1.1.1.1", "192.0.2.1", "2606:4700::1111"] {
            assert!(!own(other).unwrap_or(false), "{other}");
        }
    }

    #[test]
    fn an_address_that_is_not_the_source_of_packets_to_itself_is_own_too() {
        for address in ["127.0.0.2", "127.3.4.5"] {
            assert!(!is_source(SocketAddr::new(address.parse().unwrap(), 443)).unwrap(), "{address}");
            assert!(own(address).unwrap(), "{address}");
        }
        assert!(is_delivered_here("::ffff:127.0.0.2".parse().unwrap()).unwrap());
        // Not every machine has IPv6.
        assert!(own("::1").unwrap_or(true));
    }

    #[test]
    fn a_reply_that_is_no_route_is_an_error() {
        let mut reply = [0; 28];
        reply[4..6].copy_from_slice(&RTM_NEWROUTE.to_ne_bytes());
        reply[ROUTE_TYPE] = RTN_LOCAL;
        assert_eq!(route_type(&reply).unwrap(), RTN_LOCAL);
        assert!(route_type(&reply[..ROUTE_TYPE]).is_err() && route_type(&[]).is_err());
        reply[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        assert!(route_type(&reply).is_err(), "an error without a code");
        reply[HEADER..HEADER + 4].copy_from_slice(&(-101_i32).to_ne_bytes());
        assert_eq!(route_type(&reply).unwrap_err().raw_os_error(), Some(101));
        reply[4..6].copy_from_slice(&3_u16.to_ne_bytes());
        assert!(route_type(&reply).is_err(), "the end of a list");
    }
}
