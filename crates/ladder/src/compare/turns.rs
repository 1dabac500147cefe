//! Runs the contracts on the lanes, in turns, and draws the comparison from the bundles.

use std::collections::BTreeMap;
use std::path::PathBuf;

use herma_core::comparison::{
    ComparedContract, Comparison, ComparisonId, ComparisonSchema, Lane, LaneRun, TableRow,
};
use herma_core::contract::ContractId;
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::proof::{Compared, Criterion, Standing};
use herma_core::report::NeverActivated;
use herma_core::{Contract, Digest, Report, Status, VERSION};
use herma_harness::{Finished, Installation, Order, OrderError, Progress, run};

use super::error::CompareError;
use super::evidence::Evidence;
use super::measures::{compare_lanes, measure};

/// An order to compare lanes.
#[derive(Clone, Debug)]
pub struct ComparisonOrder {
    /// The contracts that every lane is given.
    pub contracts: Vec<ContractOnLanes>,
    /// The engines, one lane each.
    pub engines: Vec<EngineName>,
    /// How often each contract is run on each lane.
    pub repetitions: u32,
}

/// A contract that every lane is given.
#[derive(Clone, Debug)]
pub struct ContractOnLanes {
    /// The contract, parsed.
    pub contract: Contract,
    /// The contract's file as it was read.
    pub text: String,
    /// The directory that the contract's relative paths start from.
    pub dir: PathBuf,
}

/// Observes the turns of a comparison.
pub trait Turns {
    /// It is the lane's turn; the returned value observes the run.
    fn begins(&self, engine: &EngineName, contract: &ContractId) -> Box<dyn Progress + '_>;

    /// The lane's run has ended.
    fn ended(&self, _engine: &EngineName, _run: &LaneRun) {}
}

/// Runs every contract on every lane, in turns so that time is comparable, and compares the bundles. Each is
/// an ordinary run through every gate; a lane that cannot run is tried once and listed with its reason.
pub fn compare(
    installation: &Installation,
    order: &ComparisonOrder,
    turns: &dyn Turns,
) -> Result<Comparison, CompareError> {
    let contracts = check(order)?;
    let mut lanes: Vec<Running> =
        order.engines.iter().map(|engine| Running::new(engine, installation)).collect();
    let mut bases = BTreeMap::new();
    for _ in 0..order.repetitions {
        for contract in &order.contracts {
            for lane in lanes.iter_mut().filter(|lane| lane.lane.blocked.is_none()) {
                lane.take_turn(installation, contract, &mut bases, turns)?;
            }
        }
    }
    for Running { lane, evidence } in lanes.iter_mut().filter(|lane| lane.lane.blocked.is_none()) {
        lane.measures = measure(evidence);
    }
    let made_at = installation.now();
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(OrderError::Random)?;
    Ok(Comparison {
        schema: ComparisonSchema::V1,
        id: ComparisonId::new(made_at, entropy),
        herma_version: VERSION.to_owned(),
        made_at,
        contracts,
        repetitions: order.repetitions,
        table: table(&lanes),
        lanes: lanes.into_iter().map(|running| running.lane).collect(),
        runtime_default_activation: NeverActivated,
    })
}

/// All lanes of a comparison run in the same destination.
const LANE_DESTINATION: DestinationKind = DestinationKind::Sandbox;

/// Refuses a comparison of nothing, or of different things, before anything runs.
fn check(order: &ComparisonOrder) -> Result<Vec<ComparedContract>, CompareError> {
    if order.contracts.is_empty() || order.engines.is_empty() || order.repetitions == 0 {
        return Err(CompareError::Nothing);
    }
    for (at, engine) in order.engines.iter().enumerate() {
        if order.engines[..at].contains(engine) {
            return Err(CompareError::EngineTwice(engine.clone()));
        }
    }
    let mut contracts: Vec<ComparedContract> = Vec::new();
    for ContractOnLanes { contract, .. } in &order.contracts {
        let id = contract.terms.id.clone();
        if let Some(other) = contract.terms.destination.filter(|named| *named != LANE_DESTINATION) {
            return Err(CompareError::Destination(id, other));
        }
        let digest = contract.digest().map_err(OrderError::Contract)?;
        if contracts.iter().any(|known| known.id == id) {
            return Err(CompareError::ContractTwice(id));
        }
        contracts.push(ComparedContract { id, digest });
    }
    Ok(contracts)
}

/// A lane in progress, with the evidence of its bundles.
struct Running {
    lane: Lane,
    evidence: Vec<Evidence>,
}

/// The commit that the first run of each contract started from.
type Bases = BTreeMap<ContractId, String>;

impl Running {
    fn new(engine: &EngineName, installation: &Installation) -> Self {
        let known = installation.engines().get(engine);
        let lane = Lane {
            engine: engine.clone(),
            engine_digest: known.and_then(|engine| engine.digest().ok()),
            blocked: None,
            runs: Vec::new(),
            measures: Vec::new(),
        };
        Self { lane, evidence: Vec::new() }
    }

    fn take_turn(
        &mut self,
        installation: &Installation,
        given: &ContractOnLanes,
        bases: &mut Bases,
        turns: &dyn Turns,
    ) -> Result<(), CompareError> {
        let order = Order {
            contract: given.contract.clone(),
            contract_text: given.text.clone(),
            contract_dir: given.dir.clone(),
            engine: self.lane.engine.clone(),
            destination: Some(LANE_DESTINATION),
            script: None,
            keep_workspace: false,
            egress: herma_core::egress::EgressMode::Strict,
            resumes: None,
            fault: None,
        };
        let watch = turns.begins(&order.engine, &given.contract.terms.id);
        let ended = run(installation, &order, watch.as_ref());
        drop(watch);
        let finished = match ended {
            Ok(finished) => finished,
            // There is no run, and there never will be one of this contract on this lane.
            Err(OrderError::Engine(why)) => {
                self.lane.blocked = Some(format!("contract `{}`: {why}", given.contract.terms.id));
                return Ok(());
            }
            Err(other) => return Err(other.into()),
        };
        if let Some(signal) = installation.cancellation.signal() {
            return Err(CompareError::Interrupted(signal));
        }
        self.note(installation, &finished)?;
        same_base(bases, &finished.report)?;
        if let Some(run) = self.lane.runs.last() {
            turns.ended(&self.lane.engine, run);
        }
        Ok(())
    }

    /// Records the result of a run, read back from its bundle.
    fn note(&mut self, installation: &Installation, finished: &Finished) -> Result<(), CompareError> {
        let Finished { report, bundle, .. } = finished;
        let evidence = Evidence::read(bundle, &installation.trust());
        let unreadable = |why: &str| CompareError::Bundle(report.run_id, why.to_owned());
        let told = evidence.told.as_ref().map_err(|why| unreadable(why))?;
        self.lane.runs.push(LaneRun {
            run_id: told.run_id,
            contract_id: report.contract_id.clone(),
            status: told.status,
            blockers: told.blockers.clone(),
            attestation: evidence.attestation.ok_or_else(|| unreadable("it has no attestation"))?,
            result_tree: told.result_tree.clone(),
            duration_ms: told.duration_ms,
        });
        self.lane.blocked =
            why_blocked(report).or_else(|| other_engine(self.lane.engine_digest, told.engine_digest));
        self.evidence.push(evidence);
        Ok(())
    }
}

/// The missing gates in words, where the run ended at the gates.
fn why_blocked(report: &Report) -> Option<String> {
    let ended_at_the_gates = report.status == Status::Blocked && !report.engine_started;
    ended_at_the_gates.then(|| {
        let missing: Vec<&str> = report.blockers.iter().map(|record| record.detail.as_str()).collect();
        format!("contract `{}`: {}", report.contract_id, missing.join("; "))
    })
}

/// An engine that was exchanged meanwhile is not one lane.
fn other_engine(lane: Option<Digest>, ran: Option<Digest>) -> Option<String> {
    let shown =
        |digest: Option<Digest>| digest.map_or_else(|| "unknown".to_owned(), |digest| digest.to_string());
    (lane != ran).then(|| {
        format!("the engine changed while it was compared: it was {}, then {}", shown(lane), shown(ran))
    })
}

/// All lanes start from the same commit, or they were not given the same.
fn same_base(bases: &mut Bases, report: &Report) -> Result<(), CompareError> {
    let Some(base) = &report.baseline_commit else { return Ok(()) };
    let first = bases.entry(report.contract_id.clone()).or_insert_with(|| base.clone());
    if first == base { Ok(()) } else { Err(CompareError::TargetMoved(report.contract_id.clone())) }
}

/// Every lane against every other one.
fn table(lanes: &[Running]) -> Vec<TableRow> {
    let pairs = lanes.iter().flat_map(|lane| lanes.iter().map(move |other| (lane, other)));
    pairs
        .filter(|(lane, other)| lane.lane.engine != other.lane.engine)
        .flat_map(|(lane, other)| {
            let compared = match [&lane.lane, &other.lane].into_iter().find(|lane| lane.blocked.is_some()) {
                Some(blocked) => nowhere(blocked),
                None => compare_lanes(&lane.evidence, &other.evidence),
            };
            compared.into_iter().map(|row| TableRow::new(&lane.lane.engine, &other.lane.engine, row))
        })
        .collect()
}

/// There is no comparison with a lane that could not run.
fn nowhere(blocked: &Lane) -> Vec<Compared> {
    let detail = format!("`{}` could not run", blocked.engine);
    Criterion::ALL
        .map(|criterion| Compared { criterion, standing: Standing::Blocked, detail: detail.clone() })
        .into()
}

#[cfg(test)]
mod tests {
    use herma_core::Blocker;

    use super::super::sample::report;
    use super::*;

    #[test]
    fn only_a_run_that_ended_at_the_gates_blocks_its_lane() {
        let ended = |blockers: &[Blocker], started: bool| {
            let mut report = report();
            report.engine_started = started;
            report.blockers =
                blockers.iter().map(|blocker| blocker.because(format!("for {blocker}"))).collect();
            report.status = herma_core::Verdict::new(report.blockers.clone()).status();
            why_blocked(&report)
        };
        let why = ended(&[Blocker::EngineDisabled, Blocker::StageUnproven], false).unwrap();
        assert!(why.contains("for engine_disabled; for stage_unproven"), "{why}");
        assert_eq!(ended(&[Blocker::TimeoutIdle], true), None);
        assert_eq!(ended(&[Blocker::VerificationFailed], true), None);
        assert_eq!(ended(&[Blocker::ArtifactWriteFailure], false), None);
        assert_eq!(ended(&[], true), None);
        // Stage 1 starts no engine, and passes.
        assert_eq!(ended(&[], false), None);
    }

    #[test]
    fn runs_from_different_commits_are_not_compared() {
        let (mut bases, mut report) = (Bases::new(), report());
        assert!(same_base(&mut bases, &report).is_ok());
        assert!(same_base(&mut bases, &report).is_ok());
        report.baseline_commit = None;
        assert!(same_base(&mut bases, &report).is_ok(), "a run that ended at the gates has no base");
        report.baseline_commit = Some("9".repeat(40));
        assert!(matches!(same_base(&mut bases, &report), Err(CompareError::TargetMoved(_))));
        report.contract_id = "another".parse().unwrap();
        assert!(same_base(&mut bases, &report).is_ok());
    }

    #[test]
    fn an_engine_that_was_exchanged_meanwhile_is_not_one_lane() {
        let (one, other) = (Some(Digest::of(b"one")), Some(Digest::of(b"other")));
        assert_eq!(other_engine(one, one), None);
        assert_eq!(other_engine(None, None), None);
        for (lane, ran) in [(one, other), (one, None), (None, one)] {
            assert!(other_engine(lane, ran).is_some());
        }
    }
}
