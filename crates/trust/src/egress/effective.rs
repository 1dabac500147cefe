//! The hosts that a run may reach: the contract's list, the installation's, and valid grants, merged into one.

use herma_core::approver::ApproverName;
use herma_core::contract::BadContract;
use herma_core::{Contract, Timestamp};
use herma_egress::rules::{Allowlist, EgressRequest, Listing, Rule};
use herma_rules::EgressRules;

use super::error::EgressError;
use super::files::EgressFiles;
use super::grants::{GrantState, KnownGrant};
use super::list::InstallationList;
use crate::approvers::Approvers;

/// The hosts that a run may reach, with their sources.
#[derive(Clone, Debug)]
pub struct EffectiveEgress {
    /// The contract's entries.
    pub contract: Vec<String>,
    contract_list: Allowlist,
    /// The installation's list.
    pub list: InstallationList,
    /// The installation's grants, also those that do not count.
    pub grants: Vec<KnownGrant>,
}

/// The source of a rule that allows a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedBy {
    /// The contract.
    Contract,
    /// The installation's list.
    Installation,
    /// The grant with this name.
    Grant(String),
}

/// Checks the contract's entries. `text` is the contract's file, in which an error is given its place.
pub fn check_contract(contract: &Contract, text: &str) -> Result<(), BadContract> {
    for (at, entry) in contract.terms.egress.iter().enumerate() {
        if let Err(bad) = entry.parse::<Rule>() {
            return Err(BadContract::of_egress(text.as_bytes(), at, bad.to_string()));
        }
    }
    Ok(())
}

impl EffectiveEgress {
    /// The hosts that a run of this contract could reach now; without one, those of every run. `signed_by` names the
    /// approver whose signature the installation's list must carry.
    pub fn of(
        contract: Option<&Contract>,
        files: &EgressFiles,
        approvers: &Approvers,
        signed_by: Option<&ApproverName>,
        now: Timestamp,
    ) -> Result<Self, EgressError> {
        let entries = contract.map(|contract| contract.terms.egress.clone()).unwrap_or_default();
        let contract_list = Allowlist::parse(&entries).map_err(|bad| EgressError::Line {
            file: "the contract",
            line: 0,
            bad,
        })?;
        Ok(Self {
            contract: entries,
            contract_list,
            list: files.list(signed_by, approvers)?,
            grants: files.grants(approvers, now)?,
        })
    }

    fn holding(&self) -> impl Iterator<Item = &KnownGrant> {
        self.grants.iter().filter(|known| known.state == GrantState::Holds)
    }

    /// All of it as one list.
    #[must_use]
    pub fn allowlist(&self, now: Timestamp) -> Allowlist {
        let lists = self.contract_list.clone().and(self.list.allowlist.clone());
        self.holding().fold(lists, |all, known| all.and(known.grant.allowlist(now)))
    }

    /// The source of the rule that allows this, if one does.
    #[must_use]
    pub fn allowed_by(&self, asked: &EgressRequest, now: Timestamp) -> Option<AllowedBy> {
        let has = |list: &Allowlist| matches!(list.decide(asked, now).listing, Listing::Allowed { .. });
        if has(&self.contract_list) {
            return Some(AllowedBy::Contract);
        }
        if has(&self.list.allowlist) {
            return Some(AllowedBy::Installation);
        }
        let grant = self.holding().find(|known| has(&known.grant.allowlist(now)));
        grant.map(|known| AllowedBy::Grant(known.id.clone()))
    }

    /// The installation's part, as approvals are bound to it.
    #[must_use]
    pub fn rules(&self) -> EgressRules {
        EgressRules {
            hosts: self.list.hosts.iter().cloned().collect(),
            grants: self.holding().map(|known| known.digest).collect(),
        }
    }

    /// The installation's part, in lines for the approver of a run.
    #[must_use]
    pub fn of_installation(&self) -> Vec<String> {
        let hosts = self.list.hosts.iter().map(|host| format!("{host} (every run of this installation)"));
        let grants = self.holding().map(|known| {
            let grant = &known.grant;
            format!("{} (grant {} until {})", grant.hosts().join(", "), known.id, grant.expires())
        });
        hosts.chain(grants).collect()
    }
}
