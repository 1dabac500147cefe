//! Output of commands about egress.

use herma_core::Timestamp;
use herma_trust::{EgressProposal, GrantState, InstallationList, KnownGrant};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma egress show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EgressOutput {
    /// `herma.egress/v1`.
    pub schema: &'static str,
    /// The contract's hosts; none where no contract was named.
    pub contract: Option<Vec<String>>,
    /// The hosts that every run may reach.
    pub installation: EgressList,
    /// The grants, also those that do not count, the newest first.
    pub grants: Vec<GrantItem>,
}

/// The installation's list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EgressList {
    /// The entries that count.
    pub hosts: Vec<String>,
    /// The approver who must sign the list, if one must.
    pub signed_by: Option<String>,
    /// Which list was signed; it counts up with every change.
    pub serial: Option<u64>,
    /// Entries that do not count, because nobody has signed them.
    pub unsigned: Vec<String>,
    /// Why new runs are blocked, where they are.
    pub problem: Option<String>,
}

/// A grant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GrantItem {
    /// Its name.
    pub id: String,
    /// The hosts.
    pub hosts: Vec<String>,
    /// Why.
    pub reason: String,
    /// The approver of the grant, if the signature is valid.
    pub by: Option<String>,
    /// When it was made.
    pub made: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// `holds`, `over`, `revoked` or `untrusted`.
    pub state: &'static str,
    /// More about the state.
    pub detail: Option<String>,
}

/// `herma egress test --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EgressTestOutput {
    /// `herma.egress-test/v1`.
    pub schema: &'static str,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// `CONNECT`, or the method of plain HTTP.
    pub method: String,
    /// `allowed`, `denied` or `failed`.
    pub verdict: &'static str,
    /// Why it is not allowed.
    pub reason: Option<&'static str>,
    /// The rule that allows it.
    pub rule: Option<String>,
    /// The source of that rule: `contract`, `installation`, or `grant ID`.
    pub allowed_by: Option<String>,
    /// When that rule ends, where it does.
    pub until: Option<Timestamp>,
    /// Where the name leads, where it was resolved.
    pub addresses: Vec<String>,
    /// More about the reason.
    pub detail: String,
    /// The next step.
    pub next_step: Option<&'static str>,
}

/// `herma egress learned --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EgressLearnedOutput {
    /// `herma.egress-learned/v1`.
    pub schema: &'static str,
    /// The hosts that runs learned, the newest first.
    pub proposals: Vec<EgressProposal>,
}

/// `herma egress adopt --json` and `herma egress sign --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EgressListOutput {
    /// `herma.egress-list-changed/v1`.
    pub schema: &'static str,
    /// The new entries of the list.
    pub added: Vec<String>,
    /// The list as it is now.
    pub installation: EgressList,
}

/// `herma egress grant --json` and `herma egress revoke --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EgressGrantOutput {
    /// `herma.egress-grant-shown/v1`.
    pub schema: &'static str,
    /// The grant.
    pub grant: GrantItem,
}

impl From<&InstallationList> for EgressList {
    fn from(list: &InstallationList) -> Self {
        Self {
            hosts: list.hosts.clone(),
            signed_by: list.signed.as_ref().map(|signed| signed.name.to_string()),
            serial: list.signed.as_ref().and_then(|signed| signed.serial),
            unsigned: list.unsigned.clone(),
            problem: list.problem.clone(),
        }
    }
}

impl From<&KnownGrant> for GrantItem {
    fn from(known: &KnownGrant) -> Self {
        let grant = &known.grant;
        Self {
            id: known.id.clone(),
            hosts: grant.hosts().to_vec(),
            reason: grant.reason().to_owned(),
            by: known.by.as_ref().map(ToString::to_string),
            made: grant.made(),
            expires: grant.expires(),
            state: known.state.word(),
            detail: match &known.state {
                GrantState::Revoked(at) => Some(format!("revoked on {at}")),
                GrantState::Untrusted(why) => Some(why.clone()),
                GrantState::Holds | GrantState::Over => None,
            },
        }
    }
}
