//! Attempts to reach something over a network, or to make packets by hand.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, SocketType, ipproto, netlink, socket};

use super::{ABSENT, Attempt, FORBIDDEN, all, judge, judge_numbers};

/// Long enough for loopback, and for the kernel to say that there is no route; nothing here waits for a network.
const CONNECT: Duration = Duration::from_millis(100);

pub(super) const NO_ROUTE: &[ErrorKind] = &[ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];
const NOBODY_THERE: &[ErrorKind] =
    &[ErrorKind::ConnectionRefused, ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];

/// The kernel does not have the family at all, or has it switched off.
const NO_SUCH_FAMILY: [i32; 2] = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL];

pub(in super::super) fn connect_loopback(port: u16) -> Attempt {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    judge(TcpStream::connect_timeout(&address, CONNECT), NOBODY_THERE, |_| format!("connected to {address}"))
}

pub(in super::super) fn connect_out(ip: impl Into<IpAddr>, port: u16) -> Attempt {
    let address = SocketAddr::from((ip.into(), port));
    let connected = TcpStream::connect_timeout(&address, CONNECT);
    judge_numbers(connected, NO_ROUTE, &NO_SUCH_FAMILY, |_| format!("connected to {address}"))
}

pub(in super::super) fn resolve() -> Attempt {
    let datagram = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"herma", "192.0.2.53:53");
    let servers =
        judge(File::open("/etc/resolv.conf"), ABSENT, |_| "there is an /etc/resolv.conf".to_owned());
    let sent = judge(datagram(), NO_ROUTE, |_| "sent a datagram to 192.0.2.53:53".to_owned());
    all([servers, sent].into_iter(), "nothing was tried")
}

/// Sends to a port of the host's loopback. A datagram into the void is no error; the answer that nobody is there is.
pub(in super::super) fn datagram(port: u16) -> Attempt {
    let sent = || {
        let own = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        own.connect((Ipv4Addr::LOCALHOST, port))?;
        own.set_read_timeout(Some(CONNECT))?;
        own.send(b"herma")?;
        own.recv(&mut [0; 8])
    };
    judge(sent(), NOBODY_THERE, |_| "got an answer".to_owned())
}

pub(in super::super) fn abstract_socket(name: &str) -> Attempt {
    let connected =
        UnixAddress::from_abstract_name(name).and_then(|address| UnixStream::connect_addr(&address));
    judge(connected, NOBODY_THERE, |_| format!("connected to @{name}"))
}

pub(in super::super) fn raw_packets() -> Attempt {
    open(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))
}

pub(in super::super) fn packets() -> Attempt {
    open(AddressFamily::PACKET, SocketType::DGRAM, None)
}

/// Any user may listen to these; that nobody does inside is the filter's work alone.
pub(in super::super) fn kernel_messages() -> Attempt {
    open(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::KOBJECT_UEVENT))
}

pub(in super::super) fn hypervisor() -> Attempt {
    open(AddressFamily::VSOCK, SocketType::STREAM, None)
}

fn open(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> Attempt {
    let opened = socket(family, kind, protocol).map_err(io::Error::from);
    judge_numbers(opened, FORBIDDEN, &NO_SUCH_FAMILY, |_| "opened one".to_owned())
}
