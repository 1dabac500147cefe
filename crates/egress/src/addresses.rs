//! The addresses that may be connected to: public ones, and no others.
//!
//! For IPv4 a table lists the ranges that are not public. For IPv6 only global unicast (`2000::/3`) is public, less its own
//! table. Forms of IPv6 that carry an IPv4 address are refused whatever they carry, because the translator is unknown
//! here. The one exception is NAT64's well-known prefix, by which networks without IPv4 reach all of it: there the
//! embedded address is judged.
//!
//! A name is judged by all of its answers. If one of them is refused the name is, so that a private answer among public
//! ones is never reached by a second try.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The most answers of one name.
pub const MAX_ANSWERS: usize = 64;
/// The most of them that a connection is tried to.
const MAX_TRIES: usize = 4;

/// The kind of an address that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The metadata service of a cloud, which hands out credentials.
    Metadata,
    /// The unspecified address.
    Unspecified,
    /// Loopback.
    Loopback,
    /// A private network.
    Private,
    /// Link-local.
    LinkLocal,
    /// Carrier-grade NAT.
    Shared,
    /// Multicast.
    Multicast,
    /// Broadcast.
    Broadcast,
    /// Documentation.
    Documentation,
    /// Benchmarking.
    Benchmarking,
    /// Reserved, or assigned to protocols.
    Reserved,
    /// Unique local IPv6.
    UniqueLocal,
    /// Site-local IPv6, which is deprecated.
    SiteLocal,
    /// IPv4-mapped IPv6.
    Mapped,
    /// IPv4-compatible IPv6, which is deprecated.
    Compatible,
    /// 6to4.
    SixToFour,
    /// Teredo.
    Teredo,
    /// NAT64 to an IPv4 address that is not public, or a network-specific NAT64 prefix.
    Nat64,
}

impl Kind {
    /// Whether an address of this kind can be another machine of a network: not loopback, link-local or multicast.
    fn is_of_a_network(self) -> bool {
        matches!(
            self,
            Self::Private
                | Self::Shared
                | Self::UniqueLocal
                | Self::SiteLocal
                | Self::Documentation
                | Self::Benchmarking
        )
    }

    /// Its name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Shared => "carrier-grade NAT",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Reserved => "reserved",
            Self::UniqueLocal => "unique local",
            Self::SiteLocal => "site-local",
            Self::Mapped => "IPv4-mapped",
            Self::Compatible => "IPv4-compatible",
            Self::SixToFour => "6to4",
            Self::Teredo => "Teredo",
            Self::Nat64 => "NAT64",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

const fn v6(a: u16, b: u16, c: u16, d: u16) -> u128 {
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_bits()
}

/// The prefixes of IPv4 that are not public: the first address, the length of the prefix, and the kind. The first row
/// that matches counts.
const V4: &[(u32, u32, Kind)] = &[
    (v4(168, 63, 129, 16), 32, Kind::Metadata), // Azure; the only one among public addresses
    (v4(169, 254, 169, 254), 32, Kind::Metadata), // most clouds
    (v4(169, 254, 170, 2), 32, Kind::Metadata), // containers of AWS
    (v4(100, 100, 100, 200), 32, Kind::Metadata), // Alibaba
    (v4(192, 0, 0, 192), 32, Kind::Metadata),   // Oracle, earlier
    (v4(0, 0, 0, 0), 32, Kind::Unspecified),
    (v4(0, 0, 0, 0), 8, Kind::Reserved), // this network
    (v4(10, 0, 0, 0), 8, Kind::Private),
    (v4(100, 64, 0, 0), 10, Kind::Shared),
    (v4(127, 0, 0, 0), 8, Kind::Loopback),
    (v4(169, 254, 0, 0), 16, Kind::LinkLocal),
    (v4(172, 16, 0, 0), 12, Kind::Private),
    (v4(192, 0, 0, 0), 24, Kind::Reserved), // protocol assignments
    (v4(192, 0, 2, 0), 24, Kind::Documentation),
    (v4(192, 88, 99, 0), 24, Kind::SixToFour), // its relays
    (v4(192, 168, 0, 0), 16, Kind::Private),
    (v4(198, 18, 0, 0), 15, Kind::Benchmarking),
    (v4(198, 51, 100, 0), 24, Kind::Documentation),
    (v4(203, 0, 113, 0), 24, Kind::Documentation),
    (v4(224, 0, 0, 0), 4, Kind::Multicast),
    (v4(255, 255, 255, 255), 32, Kind::Broadcast),
    (v4(240, 0, 0, 0), 4, Kind::Reserved), // for later
];

/// The same for IPv6. An address in no row and outside of `2000::/3` is reserved.
const V6: &[(u128, u32, Kind)] = &[
    (v6(0xfd00, 0x0ec2, 0, 0) | 0x254, 128, Kind::Metadata), // AWS
    (v6(0xfd20, 0x00ce, 0, 0) | 0x254, 128, Kind::Metadata), // Google
    (0, 128, Kind::Unspecified),
    (1, 128, Kind::Loopback),
    (0xffff_0000_0000, 96, Kind::Mapped),
    (0, 96, Kind::Compatible),
    (v6(0x0064, 0xff9b, 1, 0), 48, Kind::Nat64), // a network's own
    (v6(0x2001, 0, 0, 0), 32, Kind::Teredo),
    (v6(0x2001, 2, 0, 0), 48, Kind::Benchmarking),
    (v6(0x2001, 0, 0, 0), 23, Kind::Reserved), // protocol assignments
    (v6(0x2001, 0x0db8, 0, 0), 32, Kind::Documentation),
    (v6(0x2002, 0, 0, 0), 16, Kind::SixToFour),
    (v6(0x3fff, 0, 0, 0), 20, Kind::Documentation),
    (v6(0xfc00, 0, 0, 0), 7, Kind::UniqueLocal),
    (v6(0xfe80, 0, 0, 0), 10, Kind::LinkLocal),
    (v6(0xfec0, 0, 0, 0), 10, Kind::SiteLocal),
    (v6(0xff00, 0, 0, 0), 8, Kind::Multicast),
];

const NAT64: u128 = v6(0x0064, 0xff9b, 0, 0);
const PUBLIC_V6: u128 = v6(0x2000, 0, 0, 0);

/// The kind of an address that may not be connected to. `None` if it is public.
#[must_use]
pub fn refused(address: IpAddr) -> Option<Kind> {
    match address {
        IpAddr::V4(address) => refused_v4(address),
        IpAddr::V6(address) => refused_v6(address.to_bits()),
    }
}

fn refused_v4(address: Ipv4Addr) -> Option<Kind> {
    let bits = address.to_bits();
    V4.iter().find(|(first, length, _)| (bits ^ first) >> (32 - length) == 0).map(|row| row.2)
}

fn refused_v6(bits: u128) -> Option<Kind> {
    let fits = |first: u128, length: u32| (bits ^ first) >> (128 - length) == 0;
    if fits(NAT64, 96) {
        let low = u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(0);
        return refused_v4(Ipv4Addr::from_bits(low)).map(|_| Kind::Nat64);
    }
    let row = V6.iter().find(|(first, length, _)| fits(*first, *length));
    row.map(|row| row.2).or_else(|| (!fits(PUBLIC_V6, 3)).then_some(Kind::Reserved))
}

/// All answers of one name, each of them public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked(Vec<IpAddr>);

/// An address that was checked, with a port. There is no other way to get one than [`Checked::targets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(SocketAddr);

/// Why a name may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswers {
    /// It has no address.
    #[error("the name has no address")]
    None,
    /// It has too many to be checked and tried.
    #[error("the name has more than {MAX_ANSWERS} addresses")]
    TooMany,
    /// One of them is not public.
    #[error("the address {address} is not public: it is {kind}")]
    Refused {
        /// Which one.
        address: IpAddr,
        /// The kind.
        kind: Kind,
    },
}

impl Checked {
    /// Checks the answers of a name, all of them.
    pub fn check(answers: &[IpAddr]) -> Result<Self, BadAnswers> {
        Self::check_for(answers, false)
    }

    /// The same, for answers that may also be in a network of the operator's own.
    pub(crate) fn check_for(answers: &[IpAddr], own_network: bool) -> Result<Self, BadAnswers> {
        if answers.is_empty() {
            return Err(BadAnswers::None);
        }
        if answers.len() > MAX_ANSWERS {
            return Err(BadAnswers::TooMany);
        }
        for &address in answers {
            if let Some(kind) = refused(address).filter(|kind| !(own_network && kind.is_of_a_network())) {
                return Err(BadAnswers::Refused { address, kind });
            }
        }
        Ok(Self(answers.to_vec()))
    }

    /// The addresses to try, one after the other. Both families have their turn.
    #[must_use]
    pub fn targets(&self, port: u16) -> Vec<Target> {
        let (sixes, fours): (Vec<_>, Vec<_>) = self.0.iter().partition(|address| address.is_ipv6());
        let first_is_six = self.0.first().is_some_and(IpAddr::is_ipv6);
        let (first, second) = if first_is_six { (sixes, fours) } else { (fours, sixes) };
        let mut second = second.into_iter();
        let mut order = Vec::with_capacity(self.0.len());
        for address in first {
            order.push(address);
            order.extend(second.next());
        }
        order.extend(second);
        order.truncate(MAX_TRIES);
        order.into_iter().map(|address| Target(SocketAddr::new(address, port))).collect()
    }
}

impl Target {
    /// The address.
    #[must_use]
    pub fn address(self) -> SocketAddr {
        self.0
    }
}
