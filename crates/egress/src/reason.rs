//! Why something does not pass, in one word each, with what a person can do about it.

use http::StatusCode;
use serde::Serialize;

/// Why a request is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// No rule names the host.
    NotListed,
    /// A rule names the host, with other ports.
    PortNotListed,
    /// Rules name host and port for TLS only.
    PlainNotListed,
    /// Rules name host and port for plain HTTP only.
    TlsNotListed,
    /// Rules name host and port, with other methods.
    MethodNotListed,
    /// A grant named it, and has expired.
    GrantExpired,
    /// The host is written in a way that readers could take differently.
    BadHost,
    /// The name leads to an address that is not public.
    PrivateAddress,
    /// The name leads to this machine.
    OwnAddress,
    /// The name has too many addresses.
    TooManyAddresses,
    /// The bytes in the tunnel are not TLS.
    NotTls,
    /// The TLS hello is not as it must be.
    #[serde(rename = "bad_hello")]
    BadClientHello,
    /// The TLS hello names no host.
    NoName,
    /// The TLS hello names another host.
    OtherName,
    /// The TLS hello hides the host.
    EncryptedHello,
    /// The TLS hello did not come in time.
    SlowHello,
    /// The request cannot be read in one way only.
    BadRequest,
    /// The request did not come in time.
    SlowRequest,
    /// Too many tunnels are open.
    TunnelQuota,
    /// The run has moved as many bytes as it may.
    ByteQuota,
    /// The run has asked as often as it may.
    RequestQuota,
    /// The run has learned as many hosts as it may.
    LearnedQuota,
    /// The decision could not be recorded.
    Unrecorded,
}

/// Why something that was allowed did not come about. The network's doing, not a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The name has no address.
    Unresolved,
    /// The resolver did not answer in time.
    SlowResolver,
    /// Nobody took the connection.
    Unreachable,
    /// The connection was not taken in time.
    SlowConnect,
    /// The client left before it said whom it wants.
    ClientLeft,
}

impl Reason {
    /// Whether it is about the list of hosts: what the mode `learn` relaxes, and nothing else.
    #[must_use]
    pub fn is_of_the_list(self) -> bool {
        matches!(
            self,
            Self::NotListed
                | Self::PortNotListed
                | Self::PlainNotListed
                | Self::TlsNotListed
                | Self::MethodNotListed
                | Self::GrantExpired
        )
    }

    /// Its code in records, responses and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NotListed => "not_listed",
            Self::PortNotListed => "port_not_listed",
            Self::PlainNotListed => "plain_not_listed",
            Self::TlsNotListed => "tls_not_listed",
            Self::MethodNotListed => "method_not_listed",
            Self::GrantExpired => "grant_expired",
            Self::BadHost => "bad_host",
            Self::PrivateAddress => "private_address",
            Self::OwnAddress => "own_address",
            Self::TooManyAddresses => "too_many_addresses",
            Self::NotTls => "not_tls",
            Self::BadClientHello => "bad_hello",
            Self::NoName => "no_name",
            Self::OtherName => "other_name",
            Self::EncryptedHello => "encrypted_hello",
            Self::SlowHello => "slow_hello",
            Self::BadRequest => "bad_request",
            Self::SlowRequest => "slow_request",
            Self::TunnelQuota => "tunnel_quota",
            Self::ByteQuota => "byte_quota",
            Self::RequestQuota => "request_quota",
            Self::LearnedQuota => "learned_quota",
            Self::Unrecorded => "unrecorded",
        }
    }

    /// The next step for a person.
    #[must_use]
    pub fn next_step(self) -> &'static str {
        match self {
            Self::NotListed | Self::PortNotListed => {
                "Add it to the contract's egress list and have it approved; only public hosts can be reached."
            }
            Self::PlainNotListed => {
                "Use https, or add it as `http://HOST` to the contract's egress list and have it approved."
            }
            Self::TlsNotListed => {
                "Add it without `http://` to the contract's egress list and have it approved."
            }
            Self::MethodNotListed => {
                "Add the method, as in `POST http://HOST`, to the contract's egress list and have it approved."
            }
            Self::GrantExpired => "Ask for a new grant.",
            Self::BadHost => "Write the host as a full name in ASCII, or as an address in its plain form.",
            Self::PrivateAddress | Self::OwnAddress => {
                "Only public addresses are reached; no list and no grant changes that."
            }
            Self::TooManyAddresses => "Use a name with fewer addresses.",
            Self::NotTls => "A tunnel carries TLS only; plain HTTP is asked for without one, as `http://`.",
            Self::BadClientHello => "Use a TLS client that keeps to the standard.",
            Self::NoName | Self::OtherName => {
                "The TLS client must name the host that the tunnel was asked for."
            }
            Self::EncryptedHello => "Switch Encrypted Client Hello off in the client.",
            Self::SlowHello | Self::SlowRequest => "Send it at once after connecting.",
            Self::BadRequest => "Send one request as HTTP/1.1, with CONNECT or with a full `http://` URL.",
            Self::TunnelQuota => "Close other connections first, and try again.",
            Self::ByteQuota | Self::RequestQuota | Self::LearnedQuota => {
                "Do with less, or have the limit raised."
            }
            Self::Unrecorded => "See to the disk of the machine that herma runs on.",
        }
    }

    /// The status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::SlowRequest => StatusCode::REQUEST_TIMEOUT,
            Self::TunnelQuota | Self::Unrecorded => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

impl Fault {
    /// Its code in records, responses and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Unresolved => "unresolved",
            Self::SlowResolver => "slow_resolver",
            Self::Unreachable => "unreachable",
            Self::SlowConnect => "slow_connect",
            Self::ClientLeft => "client_left",
        }
    }

    /// The status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Unresolved | Self::Unreachable | Self::ClientLeft => StatusCode::BAD_GATEWAY,
            Self::SlowResolver | Self::SlowConnect => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}
