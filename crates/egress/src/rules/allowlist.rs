//! All rules of a run, and their decision about a request.

use herma_core::Timestamp;

use super::{BadRule, Method, Rule};
use crate::host::Host;
use crate::reason::Reason;

/// The hosts that a run may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlist {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    rule: Rule,
    /// The end of the rule, if it comes from a grant.
    until: Option<Timestamp>,
}

/// The host, port and kind of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressRequest {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// Tunnel or plain HTTP.
    pub kind: RequestKind,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A tunnel, by CONNECT.
    Tunnel,
    /// Plain HTTP, with this method.
    Plain(Method),
}

impl RequestKind {
    /// The method of the request to the proxy.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::Tunnel => "CONNECT",
            Self::Plain(method) => method.as_str(),
        }
    }
}

/// The list's decision about a request. Addresses and TLS are checked after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListDecision {
    /// The requested host.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// The result.
    pub listing: Listing,
}

/// Whether a rule allows the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// A rule does.
    Allowed {
        /// The rule, as it is written.
        rule: String,
        /// The end of the rule, if it comes from a grant.
        until: Option<Timestamp>,
    },
    /// None does.
    Denied(Reason),
}

impl Allowlist {
    /// Reads a contract's list. The first entry that is no rule is the error.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, BadRule> {
        let read = |entry: &T| Ok(Entry { rule: entry.as_ref().parse()?, until: None });
        Ok(Self { entries: entries.iter().map(read).collect::<Result<_, BadRule>>()? })
    }

    /// Adds all of another list.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// The same list, until some time.
    pub(crate) fn until(mut self, until: Timestamp) -> Self {
        for entry in &mut self.entries {
            entry.until = Some(entry.until.map_or(until, |earlier| earlier.min(until)));
        }
        self
    }

    /// The rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.entries.iter().map(|entry| &entry.rule)
    }

    /// Whether nothing is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The decision about a request. Of several rules that match, the one that lasts longest counts; if none matches, the
    /// reason is that of the one that comes nearest.
    #[must_use]
    pub fn decide(&self, asked: &EgressRequest, now: Timestamp) -> ListDecision {
        let mut nearest = Reason::NotListed;
        let mut best: Option<&Entry> = None;
        for entry in &self.entries {
            let missed = match entry.rule.misses(asked) {
                None if entry.until.is_some_and(|until| until <= now) => Reason::GrantExpired,
                None => {
                    if best.is_none_or(|best| lasts_longer(entry, best)) {
                        best = Some(entry);
                    }
                    continue;
                }
                Some(missed) => missed,
            };
            // They are ordered by how near they come.
            nearest = nearest.max(missed);
        }
        let listing = match best {
            Some(entry) => Listing::Allowed { rule: entry.rule.to_string(), until: entry.until },
            None => Listing::Denied(nearest),
        };
        ListDecision { host: asked.host.clone(), port: asked.port, listing }
    }
}

fn lasts_longer(entry: &Entry, than: &Entry) -> bool {
    match (entry.until, than.until) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(entry), Some(than)) => entry > than,
    }
}
