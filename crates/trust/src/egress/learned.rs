//! The hosts that a run with `--egress learn` reached: a proposal for a person. Only commands for people read it.

use herma_core::contract::ContractId;
use herma_core::{RunId, Timestamp};
use herma_egress::rules::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::EgressError;
use super::files::EgressFiles;

const DIR: &str = "learned";

/// The hosts that a run learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Proposal")]
pub struct EgressProposal {
    /// The run.
    pub run_id: RunId,
    /// Its contract.
    pub contract_id: ContractId,
    /// When it ended.
    pub made: Timestamp,
    /// The rules that would have allowed the hosts it reached.
    pub hosts: Vec<String>,
}

impl EgressFiles {
    /// Keeps the proposal of a run.
    pub fn propose(&self, proposal: &EgressProposal) -> Result<(), EgressError> {
        self.write(&format!("{DIR}/{}.json", proposal.run_id), &serde_json::to_vec_pretty(proposal)?)
    }

    /// The proposal of this run.
    pub fn proposal(&self, run: RunId) -> Result<EgressProposal, EgressError> {
        let bytes = self.read(&format!("{DIR}/{run}.json"))?;
        let bytes = bytes.ok_or_else(|| EgressError::NoProposal(format!("run {run}")))?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// The proposals of all runs, the newest first.
    pub fn proposals(&self) -> Result<Vec<EgressProposal>, EgressError> {
        let names = self.names(DIR, ".json")?;
        let runs = names.iter().rev().filter_map(|name| name.parse().ok());
        runs.map(|run| self.proposal(run)).collect()
    }

    /// Adopts the learned hosts of a run: all, or the named ones. Returns the new ones.
    pub fn adopt(&self, proposal: &EgressProposal, named: &[String]) -> Result<Vec<String>, EgressError> {
        let mut rules = Vec::new();
        for host in if named.is_empty() { &proposal.hosts } else { named } {
            let rule: Rule =
                host.parse().map_err(|bad| EgressError::Line { file: "egress/learned", line: 0, bad })?;
            if !proposal.hosts.contains(&rule.to_string()) {
                return Err(EgressError::NotLearned { host: herma_core::visible::visible_line(host) });
            }
            rules.push(rule);
        }
        self.add(&rules, &format!("adopted from run {}", proposal.run_id))
    }
}
