//! A temporary grant: hosts that may be reached for a while, and why.

use herma_core::Timestamp;
use herma_core::signed::Signable;
use herma_core::visible::visible_line;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::rules::{Allowlist, BadRule};

/// The longest that a grant lasts from its making.
pub const MAX_DURATION: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most hosts of a grant.
const MAX_HOSTS: usize = 100;
/// The longest reason.
const MAX_REASON_CHARS: usize = 500;

/// A grant that was checked. One that breaks a rule cannot be made, nor read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Grant {
    hosts: Vec<String>,
    reason: String,
    made: Timestamp,
    expires: Timestamp,
    /// The hosts, read.
    #[serde(skip_serializing)]
    rules: Allowlist,
}

/// A grant as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    hosts: Vec<String>,
    reason: String,
    made: Timestamp,
    expires: Timestamp,
}

/// Why a grant is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGrant {
    /// It names no host, or too many.
    #[error("a grant names 1 to {MAX_HOSTS} hosts, this one names {0}")]
    Hosts(usize),
    /// A host is no rule.
    #[error(transparent)]
    Rule(#[from] BadRule),
    /// The reason is missing, too long or deceiving.
    #[error("a grant says why, in one line of at most {MAX_REASON_CHARS} characters that can be seen")]
    Reason,
    /// It ends before it begins.
    #[error("the grant expires at {expires}, which is not after its making at {made}")]
    Over {
        /// When it was made.
        made: Timestamp,
        /// When it ends.
        expires: Timestamp,
    },
    /// It lasts too long.
    #[error(
        "a grant lasts at most 7 days, which is `168h`; this one would last until {expires}, and {latest} is the latest"
    )]
    TooLong {
        /// When it would end.
        expires: Timestamp,
        /// The latest time that it could end.
        latest: Timestamp,
    },
}

impl Signable for Grant {
    const KIND: &'static str = "herma.egress-grant/v1";
}

impl Grant {
    /// Makes a grant.
    pub fn new(
        hosts: Vec<String>,
        reason: String,
        made: Timestamp,
        expires: Timestamp,
    ) -> Result<Self, BadGrant> {
        if hosts.is_empty() || hosts.len() > MAX_HOSTS {
            return Err(BadGrant::Hosts(hosts.len()));
        }
        let rules = Allowlist::parse(&hosts)?;
        let is_plain = !reason.trim().is_empty() && visible_line(&reason) == reason;
        if !is_plain || reason.chars().count() > MAX_REASON_CHARS {
            return Err(BadGrant::Reason);
        }
        if expires <= made {
            return Err(BadGrant::Over { made, expires });
        }
        if expires.duration_since(made) > MAX_DURATION {
            let latest = made.checked_add(MAX_DURATION).unwrap_or(Timestamp::MAX);
            return Err(BadGrant::TooLong { expires, latest });
        }
        Ok(Self { hosts, reason, made, expires, rules: rules.until(expires) })
    }

    /// The rules that it allows at this time. It ends by itself, also during a run.
    #[must_use]
    pub fn allowlist(&self, now: Timestamp) -> Allowlist {
        if self.holds_at(now) { self.rules.clone() } else { Allowlist::default() }
    }

    /// Whether it counts at this time. One from the future does not: its seven days would be longer.
    #[must_use]
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.made <= now && now < self.expires
    }

    /// The hosts, as they are written.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Why it was made.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// When it was made.
    #[must_use]
    pub fn made(&self) -> Timestamp {
        self.made
    }

    /// When it ends.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.expires
    }
}

impl TryFrom<Written> for Grant {
    type Error = BadGrant;

    fn try_from(written: Written) -> Result<Self, BadGrant> {
        let Written { hosts, reason, made, expires } = written;
        Self::new(hosts, reason, made, expires)
    }
}
