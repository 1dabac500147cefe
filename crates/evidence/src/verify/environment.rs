//! The check that `environment.json` belongs to the contract, and that the report repeats it.

use herma_core::environment::{
    BaseResult, EnvironmentDefinition, EnvironmentRecord, EnvironmentUse, ExpectBefore, History,
    LayerBuildRecord, LayerName, RebuiltUse, SetupOn,
};
use herma_core::{Blocker, Contract, EventType, RepoPath, Report, Status};

use super::pass::BundleContents;
use crate::layout;

/// The record of the environment agrees with contract and report, and the engine started only in one that was built.
pub(super) fn environment(seen: &BundleContents, report: &Report) -> Result<(), String> {
    // Whether a contract that cannot be read is excused is what the check of the contract says.
    let Ok(contract) = seen.contract() else { return Ok(()) };
    let wanted = contract.terms.has_preflight();
    let Some(bytes) = &seen.environment else {
        return match () {
            () if report.environment.is_some() || !report.verify_before.is_empty() => {
                Err(format!("the report tells of an environment, and {} is not there", layout::ENVIRONMENT))
            }
            () if wanted && (report.engine_started || report.status == Status::Pass) => {
                Err(format!("the contract has an environment, and {} is not there", layout::ENVIRONMENT))
            }
            () => Ok(()),
        };
    };
    if !wanted {
        return Err(format!("{} is there, and the contract has no environment", layout::ENVIRONMENT));
    }
    let bytes = bytes.as_ref().map_err(Clone::clone)?;
    let record: EnvironmentRecord =
        serde_json::from_slice(bytes).map_err(|e| format!("{}: {e}", layout::ENVIRONMENT))?;
    definition(&record, contract)?;
    commands(&record, contract)?;
    base_trees(&record, contract, seen, report)?;
    let interrupted = report.blockers.iter().any(|record| record.blocker == Blocker::Interrupted);
    let results = record.preflight.as_ref().map_or(&[][..], |preflight| &preflight.results);
    let says = (used(&record), results);
    // Results that were not saved before an interruption are not in the report.
    let is_lost = interrupted && report.environment.is_none() && report.verify_before.is_empty();
    let is_lost = is_lost || (interrupted && record.rebuilt.is_some());
    if !is_lost && says != (report.environment.clone(), &report.verify_before[..]) {
        return Err(format!("the report says of the environment what {} does not", layout::ENVIRONMENT));
    }
    if report.engine_started || report.status == Status::Pass {
        ready(&record, contract, results)?;
    }
    if report.status == Status::Pass {
        let inputs = record.layers.iter().flat_map(|layer| &layer.inputs);
        let changed = |path: &RepoPath| report.changed_files.iter().any(|change| change.path == *path);
        let changed: Vec<&RepoPath> = inputs.map(|input| &input.path).filter(|path| changed(path)).collect();
        rebuilt(&record, contract, &changed)?;
    }
    Ok(())
}

/// The definition is the contract's, with its digest.
fn definition(record: &EnvironmentRecord, contract: &Contract) -> Result<(), String> {
    if record.definition != contract.terms.environment {
        return Err("the definition of the environment is not that of the contract".to_owned());
    }
    let digest = record.definition.as_ref().map(EnvironmentDefinition::digest).transpose();
    if digest.map_err(|e| e.to_string())? != record.definition_digest {
        return Err("the definition of the environment has another digest".to_owned());
    }
    Ok(())
}

/// The setup layer was made of the base of the run, or for the patch of its result, unless setup saw the inputs alone.
fn base_trees(
    record: &EnvironmentRecord,
    contract: &Contract,
    seen: &BundleContents,
    report: &Report,
) -> Result<(), String> {
    let Some(definition) = &contract.terms.environment else { return Ok(()) };
    let prepared = seen.events.as_ref().and_then(|events| events.data(EventType::WorkspacePrepared));
    let base = prepared.and_then(|data| data.get("baseline_tree")?.as_str());
    let of_base = record.layers.iter().map(|layer| (layer, base));
    let rebuilt = record.rebuilt.iter().flat_map(|rebuilt| &rebuilt.layers);
    let of_result = rebuilt.map(|layer| (layer, report.result_tree.as_deref()));
    for (layer, tree) in of_base.chain(of_result) {
        let needs_tree = layer.kind == LayerName::Setup && definition.setup_on == SetupOn::Base;
        let is_made_of = |built: &String| tree.is_none_or(|tree| tree == built);
        if layer.base_tree.is_some() != needs_tree || !layer.base_tree.iter().all(is_made_of) {
            return Err("a layer of the environment was made of another tree than the run's".to_owned());
        }
    }
    Ok(())
}

/// Where the patch changes an input, verification used an environment that was built for it, as the contract permits.
fn rebuilt(record: &EnvironmentRecord, contract: &Contract, changed: &[&RepoPath]) -> Result<(), String> {
    let Some(input) = changed.first() else { return Ok(()) };
    let permitted = contract.terms.environment.as_ref().is_some_and(|definition| definition.rebuild);
    let rebuilt = record.rebuilt.as_ref().filter(|rebuilt| permitted && rebuilt.failure.is_none());
    let names = |path: &RepoPath| rebuilt.is_some_and(|rebuilt| rebuilt.changed_inputs.contains(path));
    let is_built = rebuilt.is_some_and(|rebuilt| rebuilt.layers.len() == record.layers.len());
    if is_built && changed.iter().all(|path| names(path)) {
        return Ok(());
    }
    Err(format!("the patch changes {}, an input of the environment", input.shortened()))
}

/// The commands that built each layer, and those of the preflight, are the contract's.
fn commands(record: &EnvironmentRecord, contract: &Contract) -> Result<(), String> {
    let again = record.rebuilt.iter().flat_map(|rebuilt| rebuilt.layers.iter().enumerate());
    for (at, layer) in record.layers.iter().enumerate().chain(again) {
        let own = contract.terms.environment.as_ref().map(|definition| match layer.kind {
            LayerName::Fetch => &definition.fetch,
            LayerName::Setup => &definition.setup,
        });
        let ran: Vec<&String> = layer.commands.iter().map(|ran| &ran.command).collect();
        if own.is_none_or(|own| !own.iter().eq(ran)) || (layer.kind == LayerName::Fetch) != (at == 0) {
            return Err("the layers of the environment ran other commands than the contract's".to_owned());
        }
    }
    let ran = record.preflight.iter().flat_map(|preflight| preflight.results.iter().map(BaseResult::command));
    // The preflight ends at the first command that cannot run.
    if !ran.eq(contract.terms.verify.iter().map(String::as_str).take(count(record))) {
        return Err("the preflight ran other commands than the contract's".to_owned());
    }
    Ok(())
}

fn count(record: &EnvironmentRecord) -> usize {
    record.preflight.as_ref().map_or(0, |preflight| preflight.results.len())
}

/// The part of the record that the report repeats.
fn used(record: &EnvironmentRecord) -> Option<EnvironmentUse> {
    let (definition, tree) = (record.definition_digest?, record.layers.last()?.tree);
    let keys = |layers: &[LayerBuildRecord]| layers.iter().map(|layer| layer.key).collect();
    let rebuilt = record.rebuilt.as_ref().and_then(|rebuilt| {
        Some(RebuiltUse { layers: keys(&rebuilt.layers), tree: rebuilt.layers.last()?.tree })
    });
    Some(EnvironmentUse { definition, layers: keys(&record.layers), tree, rebuilt })
}

/// Nothing of the record keeps an engine from starting.
fn ready(record: &EnvironmentRecord, contract: &Contract, results: &[BaseResult]) -> Result<(), String> {
    // One layer for the fetch commands, and one for the setup commands where there are any.
    let layers = record.definition.as_ref().map_or(0, |own| 1 + usize::from(!own.setup.is_empty()));
    let is_built = record.failure.is_none() && record.layers.len() == layers;
    let is_unrunnable = |result: &BaseResult| matches!(result, BaseResult::Unrunnable { .. });
    if !is_built || results.len() != contract.terms.verify.len() || results.iter().any(is_unrunnable) {
        return Err("the engine started without an environment in which verification can run".to_owned());
    }
    let gives_history = record.definition.as_ref().is_some_and(|own| own.history != History::None);
    if gives_history != record.history.is_some() {
        return Err("the checkouts had another git history than the contract's".to_owned());
    }
    let fails = results.iter().any(|result| matches!(result, BaseResult::Failed { .. }));
    match contract.terms.expect_before {
        ExpectBefore::Pass if fails => Err("the base fails, and the contract expects a pass".to_owned()),
        ExpectBefore::Fail if !fails => Err("the base passes, and the contract expects a failure".to_owned()),
        ExpectBefore::Any | ExpectBefore::Pass | ExpectBefore::Fail => Ok(()),
    }
}
