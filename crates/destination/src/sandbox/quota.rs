//! Quotas that the kernel counts per user. In a user namespace of its own a sandbox gets a part of each, so that what it uses
//! leaves the rest to the user outside.
//!
//! The kernel charges every instance and watch of inotify to the namespace and to all above it, each with a maximum of its
//! own. The maximum is set in the namespace that bubblewrap makes first; the command runs in one below, which has no
//! capability over it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::limits::{Held, HeldBy, LimitName, Limits};

/// Which part of the user's quota one sandbox gets: so many can be busy at once before the user outside runs short.
const PART: u64 = 8;

/// One quota: the limit, its setting in a user namespace, and the setting of the whole machine.
struct Quota {
    name: LimitName,
    /// Below `/proc/sys/user`.
    setting: &'static str,
    machine: &'static str,
}

const QUOTAS: [Quota; 2] = [
    Quota {
        name: LimitName::InotifyInstances,
        setting: "max_inotify_instances",
        machine: "/proc/sys/fs/inotify/max_user_instances",
    },
    Quota {
        name: LimitName::InotifyWatches,
        setting: "max_inotify_watches",
        machine: "/proc/sys/fs/inotify/max_user_watches",
    },
];

/// The directory whose files are the quotas of the user namespace of whoever opens them.
pub(super) const SETTINGS: &str = "/proc/sys/user";

/// What the namespace holds. A kernel without these settings (before 4.11) holds nothing.
pub(super) fn held(limits: &Limits) -> Vec<Held> {
    let most = |name| match name {
        LimitName::InotifyInstances => limits.inotify_instances,
        _ => limits.inotify_watches,
    };
    let part =
        |(name, part): &(LimitName, u64)| Held::new(*name, (*part).min(most(*name)), HeldBy::UserNamespace);
    parts().iter().map(part).collect()
}

/// The file below [`SETTINGS`] that sets a limit.
pub(super) fn setting(name: LimitName) -> Option<&'static str> {
    QUOTAS.iter().find(|quota| quota.name == name).map(|quota| quota.setting)
}

/// One sandbox's part of each quota that this user has here. Read once: a run asks for it at every start.
fn parts() -> &'static [(LimitName, u64)] {
    static PARTS: OnceLock<Vec<(LimitName, u64)>> = OnceLock::new();
    PARTS.get_or_init(|| {
        let part = |quota: &Quota| {
            let own = number(&Path::new(SETTINGS).join(quota.setting))?;
            let whole = number(Path::new(quota.machine)).map_or(own, |machine| machine.min(own));
            Some((quota.name, (whole / PART).max(1)))
        };
        QUOTAS.iter().filter_map(part).collect()
    })
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_gets_a_part_of_what_the_user_has_and_no_more_than_the_limit() {
        let whole = number(Path::new(QUOTAS[0].machine)).unwrap();
        let value = |limits: &Limits| {
            let all = held(limits);
            let named = |held: &&Held| held.name == LimitName::InotifyInstances;
            all.iter().find(named).map(|held| held.value).unwrap()
        };
        let default = value(&Limits::default());
        assert!(default >= 1 && default <= whole / PART + 1, "{default} of {whole}");
        assert_eq!(value(&Limits { inotify_instances: 1, ..Limits::default() }), 1);
    }
}
