//! Removes the least recently used layers until the rest fits into a budget.

use std::fs;
use std::io;

use herma_home::remove_tree;

use super::lock::KeyLock;
use super::{LayerRecord, LayerStore};
use crate::key::LayerKey;

/// The result of a prune.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// The removed layers.
    pub removed: Vec<LayerRecord>,
    /// The layers that stay.
    pub kept: Vec<LayerRecord>,
    /// Those among them that stay although the budget is exceeded, because a process uses them.
    pub in_use: Vec<LayerRecord>,
}

impl LayerStore {
    /// Removes the layer with this name, unless a process uses it.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        let Some(key) = LayerKey::from_name(name) else { return Ok(false) };
        match KeyLock::try_exclusive(&self.lock_file(key))? {
            None => Ok(false),
            Some(_lock) => self.take_out(key).map(|()| true),
        }
    }

    /// Out of its place first: a removal that is interrupted leaves nothing that looks like a layer.
    fn take_out(&self, key: LayerKey) -> io::Result<()> {
        let aside = self.building(key);
        remove_tree(&aside)?;
        fs::rename(self.dir(key), &aside)?;
        remove_tree(&aside)
    }

    /// Removes layers, the least recently used first, until all together have at most `budget_bytes`. One in use is never removed.
    pub fn prune(&self, budget_bytes: u64) -> io::Result<Pruned> {
        let layers = self.list()?;
        let mut total: u64 = layers.iter().map(|layer| layer.record.tree.bytes).sum();
        let mut pruned = Pruned::default();
        for layer in layers {
            let record = layer.record;
            if total <= budget_bytes {
                pruned.kept.push(record);
                continue;
            }
            let key = record.key;
            let Some(_lock) = KeyLock::try_exclusive(&self.lock_file(key))? else {
                pruned.in_use.push(record.clone());
                pruned.kept.push(record);
                continue;
            };
            self.take_out(key)?;
            total = total.saturating_sub(record.tree.bytes);
            pruned.removed.push(record);
        }
        Ok(pruned)
    }
}
