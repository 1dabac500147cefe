//! Attempts to use the network, or to send raw packets.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, SocketType, ipproto, netlink, socket};

use super::{ABSENT, FORBIDDEN, ProbeOutcome, all, judge, judge_numbers};

/// Long enough for loopback and for "no route"; no attempt waits for a network.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) const NO_ROUTE: &[ErrorKind] = &[ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];
const NO_LISTENER: &[ErrorKind] =
    &[ErrorKind::ConnectionRefused, ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];

/// The kernel lacks the address family, or it is disabled.
const NO_SUCH_FAMILY: [i32; 2] = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL];

pub(in super::super) fn connect_loopback(port: u16) -> ProbeOutcome {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    judge(TcpStream::connect_timeout(&address, CONNECT_TIMEOUT), NO_LISTENER, |_| {
        format!("connected to {address}")
    })
}

pub(in super::super) fn connect_out(ip: impl Into<IpAddr>, port: u16) -> ProbeOutcome {
    let address = SocketAddr::from((ip.into(), port));
    let connected = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT);
    judge_numbers(connected, NO_ROUTE, &NO_SUCH_FAMILY, |_| format!("connected to {address}"))
}

pub(in super::super) fn resolve() -> ProbeOutcome {
    let datagram = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"herma", "192.0.2.53:53");
    let servers =
        judge(File::open("/etc/resolv.conf"), ABSENT, |_| "there is an /etc/resolv.conf".to_owned());
    let sent = judge(datagram(), NO_ROUTE, |_| "sent a datagram to 192.0.2.53:53".to_owned());
    all([servers, sent].into_iter(), "nothing was tried")
}

/// Sends to a loopback port of the host. Sending to a closed port is no error; the ICMP error that follows is.
pub(in super::super) fn datagram(port: u16) -> ProbeOutcome {
    let sent = || {
        let own = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        own.connect((Ipv4Addr::LOCALHOST, port))?;
        own.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        own.send(b"herma")?;
        own.recv(&mut [0; 8])
    };
    judge(sent(), NO_LISTENER, |_| "got an answer".to_owned())
}

pub(in super::super) fn abstract_socket(name: &str) -> ProbeOutcome {
    let connected =
        UnixAddress::from_abstract_name(name).and_then(|address| UnixStream::connect_addr(&address));
    judge(connected, NO_LISTENER, |_| format!("connected to @{name}"))
}

pub(in super::super) fn raw_packets() -> ProbeOutcome {
    open(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))
}

pub(in super::super) fn packets() -> ProbeOutcome {
    open(AddressFamily::PACKET, SocketType::DGRAM, None)
}

/// Any user may receive these; only the seccomp filter denies it.
pub(in super::super) fn kernel_messages() -> ProbeOutcome {
    open(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::KOBJECT_UEVENT))
}

pub(in super::super) fn hypervisor() -> ProbeOutcome {
    open(AddressFamily::VSOCK, SocketType::STREAM, None)
}

fn open(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> ProbeOutcome {
    let opened = socket(family, kind, protocol).map_err(io::Error::from);
    judge_numbers(opened, FORBIDDEN, &NO_SUCH_FAMILY, |_| "opened one".to_owned())
}
