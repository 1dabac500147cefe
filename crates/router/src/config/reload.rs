//! The parts of a configuration that a running router can change.

use super::Config;

/// The new configuration changes keys that need a restart. The old one stays in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot change while the router runs; the old configuration stays: start the router anew to change that", said(.keys))]
pub struct CannotReload {
    /// Which keys.
    pub keys: Vec<&'static str>,
}

fn said(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<String>>().join(" and ")
}

impl Config {
    /// Whether a running router can go on with the new configuration.
    pub fn changes(&self, new: &Self) -> Result<(), CannotReload> {
        let changed = [
            ("listen.address", self.listen != new.listen),
            ("admin.address", self.admin != new.admin),
            ("state", self.state != new.state),
            ("limits.max_connections", self.limits.max_connections != new.limits.max_connections),
            ("limits.threads", self.limits.threads != new.limits.threads),
        ];
        let keys: Vec<&str> =
            changed.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect();
        if keys.is_empty() { Ok(()) } else { Err(CannotReload { keys }) }
    }
}
