//! What one run may reach: the contract's list, the installation's, and grants that hold, compiled into one.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::BadContract;
use herma_core::egress::EgressMode;
use herma_core::{Contract, Stage, Timestamp};
use herma_destination::DestinationCapabilities;
use herma_egress::rules::{Allowlist, Asked, Listing, Rule};
use herma_rules::EgressRules;

use super::error::EgressError;
use super::grants::{GrantState, KnownGrant};
use super::list::InstallationList;
use crate::installation::Installation;
use crate::order::Order;

/// What the proxy of a run is started with.
#[derive(Clone, Debug)]
pub(crate) struct EgressPlan {
    pub(crate) allowlist: Allowlist,
    pub(crate) mode: EgressMode,
    /// What of it comes from the installation, for the digest that approvals are bound to.
    pub(crate) rules: EgressRules,
}

/// Everything that decides what a run may reach.
#[derive(Clone, Debug)]
pub struct EgressOfRun {
    /// The contract's entries.
    pub contract: Vec<String>,
    contract_list: Allowlist,
    /// The installation's list.
    pub list: InstallationList,
    /// The installation's grants, also those that do not count.
    pub grants: Vec<KnownGrant>,
}

/// Where a rule comes from that allows something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
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

impl Installation {
    /// What a run of this contract could reach now; without one, what every run can.
    pub fn egress_of(&self, contract: Option<&Contract>) -> Result<EgressOfRun, EgressError> {
        let entries = contract.map(|contract| contract.terms.egress.clone()).unwrap_or_default();
        let contract_list = Allowlist::parse(&entries).map_err(|bad| EgressError::Line {
            file: "the contract",
            line: 0,
            bad,
        })?;
        let (files, approvers) = (self.egress(), self.approvers());
        Ok(EgressOfRun {
            contract: entries,
            contract_list,
            list: files.list(self.operator.egress_signed_by.as_ref(), &approvers)?,
            grants: files.grants(&approvers, self.clock.now())?,
        })
    }
}

impl EgressOfRun {
    fn holding(&self) -> impl Iterator<Item = &KnownGrant> {
        self.grants.iter().filter(|known| known.state == GrantState::Holds)
    }

    /// All of it as one list.
    #[must_use]
    pub fn allowlist(&self, now: Timestamp) -> Allowlist {
        let lists = self.contract_list.clone().and(self.list.allowlist.clone());
        self.holding().fold(lists, |all, known| all.and(known.grant.allowlist(now)))
    }

    /// Where the rule comes from that allows this, if one does.
    #[must_use]
    pub fn allowed_by(&self, asked: &Asked, now: Timestamp) -> Option<Allowed> {
        let has = |list: &Allowlist| matches!(list.decide(asked, now).listing, Listing::Allowed { .. });
        if has(&self.contract_list) {
            return Some(Allowed::Contract);
        }
        if has(&self.list.allowlist) {
            return Some(Allowed::Installation);
        }
        let grant = self.holding().find(|known| has(&known.grant.allowlist(now)));
        grant.map(|known| Allowed::Grant(known.id.clone()))
    }

    /// What of it comes from the installation, as approvals are bound to it.
    #[must_use]
    pub fn rules(&self) -> EgressRules {
        EgressRules {
            hosts: self.list.hosts.iter().cloned().collect(),
            grants: self.holding().map(|known| known.digest).collect(),
        }
    }

    /// What of it comes from the installation, in lines for a person who is asked to approve a run.
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

/// What a run of this order may reach, or why it cannot start.
pub(crate) fn look(installation: &Installation, order: &Order) -> Result<EgressPlan, BlockerRecord> {
    let unready = |what: String, next: &str| {
        Err(BlockerRecord { next_step: next.to_owned(), ..Blocker::DestinationUnready.because(what) })
    };
    let terms = &order.contract.terms;
    let learns = order.egress == EgressMode::Learn;
    if !DestinationCapabilities::of(order.destination()).has_network_namespace() {
        if !terms.egress.is_empty() {
            return unready(
                "the contract names egress hosts, and `host` has no walls that would keep the engine to them"
                    .to_owned(),
                "Run it in `sandbox`.",
            );
        }
        if learns {
            return unready(
                "there is nothing to learn on `host`: it has no walls, and so no proxy".to_owned(),
                "Run it in `sandbox`.",
            );
        }
    }
    if learns && terms.stage >= Stage::CopiedRepo {
        return unready(
            format!(
                "`--egress learn` lets the engine reach hosts that nobody has listed, and at stage {} that could carry \
                 source out",
                terms.stage
            ),
            "Learn on a fixture at stage 2, look at what it learned with `herma egress learned`, and adopt it.",
        );
    }
    let of_run = match installation.egress_of(Some(&order.contract)) {
        Ok(of_run) => of_run,
        Err(bad) => {
            return unready(bad.to_string(), "Mend it; `herma egress show` says when it can be read.");
        }
    };
    if let Some(problem) = &of_run.list.problem {
        return unready(problem.clone(), "`herma egress show` says which list counts until it is mended.");
    }
    let allowlist = of_run.allowlist(installation.clock.now());
    Ok(EgressPlan { allowlist, mode: order.egress, rules: of_run.rules() })
}
