//! The limits of a proxy. Each has a default, and none can be left out.

use std::time::Duration;

use herma_net::head::HeadLimits;

/// The limits of one proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the connection to the end of the request's head.
    pub head: Duration,
    /// For the resolver.
    pub resolve: Duration,
    /// For connecting, over all addresses of a name.
    pub connect: Duration,
    /// From the answer to CONNECT to the end of the TLS hello.
    pub hello: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// Of one tunnel or exchange in all.
    pub lifetime: Duration,
    /// Tunnels and exchanges at once.
    pub tunnels: usize,
    /// Bytes in both directions, over all tunnels.
    pub bytes: u64,
    /// Requests in all. It bounds the record of decisions too.
    pub requests: u64,
    /// Hosts that the mode `learn` writes down.
    pub learned: usize,
    /// Threads of the proxy.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            resolve: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            hello: Duration::from_secs(10),
            idle: Duration::from_mins(5),
            lifetime: Duration::from_hours(1),
            tunnels: 256,
            bytes: 16 << 30,
            requests: 100_000,
            learned: 1_000,
            threads: 2,
        }
    }
}

/// The bounds of a request head.
pub(super) const HEAD_LIMITS: HeadLimits = HeadLimits { max_bytes: 16 << 10, max_headers: 100 };
