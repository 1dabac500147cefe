//! The list of hosts that may be reached. A host that is not on it is denied.
//!
//! | entry | allows |
//! | --- | --- |
//! | `example.org` | TLS to this host at port 443 |
//! | `example.org:8443` | TLS to this host at this port |
//! | `*.example.org` | TLS to every host below it, at any depth; not to `example.org` itself |
//! | `8.8.8.8`, `[2606:4700::1111]:853` | TLS to this address, which must be public |
//! | `http://example.org` | plain HTTP to this host at port 80, with GET and HEAD |
//! | `GET,POST http://example.org:8080` | plain HTTP with exactly these methods |

mod allowlist;
mod method;
mod parse;

pub(crate) use parse::shown;

pub use allowlist::{Allowlist, EgressRequest, ListDecision, Listing, RequestKind};
pub use method::Method;
pub use parse::BadRule;

use std::fmt;

use crate::host::{Host, Name};
use crate::reason::Reason;

/// The port of TLS, where none is named.
pub(crate) const TLS_PORT: u16 = 443;
/// The port of plain HTTP, where none is named.
pub(crate) const PLAIN_PORT: u16 = 80;
/// The methods of plain HTTP, where none are named: what reads.
const READING: &[Method] = &[Method::Get, Method::Head];

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: Pattern,
    port: u16,
    scheme: Scheme,
}

/// Which hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exactly(Host),
    Below(Name),
}

/// The scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scheme {
    Tls,
    /// Sorted, without duplicates, and never empty.
    Plain(Vec<Method>),
}

impl Rule {
    /// The rule that allows exactly what was asked.
    #[must_use]
    pub fn for_request(asked: &EgressRequest) -> Self {
        let scheme = match asked.kind {
            RequestKind::Tunnel => Scheme::Tls,
            RequestKind::Plain(method) => Scheme::Plain(vec![method]),
        };
        Self { pattern: Pattern::Exactly(asked.host.clone()), port: asked.port, scheme }
    }

    /// Why it does not allow what was asked; `None` says that it does.
    fn misses(&self, asked: &EgressRequest) -> Option<Reason> {
        let is_host = match (&self.pattern, &asked.host) {
            (Pattern::Exactly(host), asked) => host == asked,
            (Pattern::Below(domain), Host::Name(name)) => name.is_below(domain),
            (Pattern::Below(_), Host::Address(_)) => false,
        };
        if !is_host {
            return Some(Reason::NotListed);
        }
        if self.port != asked.port {
            return Some(Reason::PortNotListed);
        }
        match (&self.scheme, asked.kind) {
            (Scheme::Tls, RequestKind::Tunnel) => None,
            (Scheme::Tls, RequestKind::Plain(_)) => Some(Reason::PlainNotListed),
            (Scheme::Plain(_), RequestKind::Tunnel) => Some(Reason::TlsNotListed),
            (Scheme::Plain(methods), RequestKind::Plain(method)) => {
                (!methods.contains(&method)).then_some(Reason::MethodNotListed)
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = match &self.scheme {
            Scheme::Tls => TLS_PORT,
            Scheme::Plain(methods) => {
                if methods != READING {
                    let words: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
                    write!(f, "{} ", words.join(","))?;
                }
                f.write_str("http://")?;
                PLAIN_PORT
            }
        };
        match &self.pattern {
            Pattern::Exactly(host) => write!(f, "{host}")?,
            Pattern::Below(domain) => write!(f, "*.{domain}")?,
        }
        if self.port == usual { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}
