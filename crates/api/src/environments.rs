//! Lists, shows and removes the layers of environments.

use std::io;

use herma_core::Digest;
use herma_core::environment::LayerBuildRecord;
use herma_environments::layers::{LayerKind, LayerStore, ListedLayer};
use herma_harness::{Installation, layer_record};

use crate::output::{EnvironmentLayerOutput, EnvironmentsOutput, EnvironmentsPrunedOutput, LayerRow};

/// Layers could not be listed, shown or removed.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// A file could not be read or removed.
    #[error("the layers of environments: {0}")]
    Io(#[from] io::Error),
    /// No key starts with these digits, or several do.
    #[error("{} a key that starts with `{digits}`", if *.found == 0 { "no layer has" } else { "several layers have" })]
    NotOne {
        /// The digits.
        digits: String,
        /// How many there are.
        found: usize,
    },
    /// A record could not be read.
    #[error("the record of a layer: {0}")]
    Record(#[from] serde_json::Error),
}

fn store(installation: &Installation) -> Result<LayerStore, LayersError> {
    Ok(LayerStore::open(&installation.home.environments())?)
}

/// Every layer, the least recently used first.
pub fn environments(installation: &Installation) -> Result<EnvironmentsOutput, LayersError> {
    let layers: Vec<LayerRow> =
        store(installation)?.list()?.iter().map(row).collect::<Result<_, serde_json::Error>>()?;
    let bytes = layers.iter().map(|layer| layer.bytes).sum();
    Ok(EnvironmentsOutput { schema: "herma.environments/v1", layers, bytes })
}

/// The layer whose key starts with these digits.
pub fn environment_layer(
    installation: &Installation,
    digits: &str,
) -> Result<EnvironmentLayerOutput, LayersError> {
    let wanted = digits.strip_prefix("sha256:").unwrap_or(digits);
    let mut layers = store(installation)?.list()?;
    layers.retain(|layer| layer.record.key.name().starts_with(wanted));
    let [layer] = &layers[..] else {
        return Err(LayersError::NotOne { digits: digits.to_owned(), found: layers.len() });
    };
    let directory = installation.home.environments().join(layer.record.key.name());
    Ok(EnvironmentLayerOutput {
        schema: "herma.environment-layer/v1",
        layer: layer_record(&layer.record, true)?,
        directory: directory.display().to_string(),
    })
}

/// Removes layers until the rest has at most this many bytes.
pub fn prune_environments(
    installation: &Installation,
    max_bytes: u64,
) -> Result<EnvironmentsPrunedOutput, LayersError> {
    let pruned = store(installation)?.prune(max_bytes)?;
    let keys = |records: &[herma_environments::layers::LayerRecord]| {
        let record = |record| Ok(layer_record(record, true)?.key);
        records.iter().map(record).collect::<Result<Vec<Digest>, serde_json::Error>>()
    };
    Ok(EnvironmentsPrunedOutput {
        schema: "herma.environments-pruned/v1",
        removed: keys(&pruned.removed)?,
        kept: keys(&pruned.kept)?,
        in_use: keys(&pruned.in_use)?,
        freed_bytes: pruned.removed.iter().map(|record| record.tree.bytes).sum(),
    })
}

fn row(layer: &ListedLayer) -> Result<LayerRow, serde_json::Error> {
    let LayerBuildRecord { key, built_at, files, bytes, commands, .. } = layer_record(&layer.record, true)?;
    let kind = match layer.record.kind {
        LayerKind::Fetch => "fetch",
        LayerKind::Setup => "setup",
    };
    Ok(LayerRow {
        key,
        kind: kind.to_owned(),
        built_at,
        last_used: layer.last_used,
        in_use: layer.in_use,
        files,
        bytes,
        commands: commands.into_iter().map(|ran| ran.command).collect(),
    })
}
