//! Per-user kernel quotas. A sandbox gets a share of each in its own user namespace, so that it cannot exhaust the
//! quota of the user outside.
//!
//! The kernel charges every inotify instance and watch to the namespace and to all of its ancestors, each with its
//! own maximum. The maximum is set in the namespace that bubblewrap creates first; the command runs in a nested one
//! without capabilities over it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::limits::{Held, HeldBy, LimitName, Limits};

/// One sandbox gets this fraction of the user's quota, so that many can be busy at once.
const USER_SHARE_DIVISOR: u64 = 8;

/// One quota: the limit, its sysctl in a user namespace, and the sysctl of the whole machine.
struct Quota {
    name: LimitName,
    /// The file name below `/proc/sys/user`.
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

/// The quotas of the user namespace of the process that opens them.
pub(super) const SETTINGS: &str = "/proc/sys/user";

/// The limits that the namespace enforces; none on kernels before 4.11.
pub(super) fn held(limits: &Limits) -> Vec<Held> {
    let max = |name| match name {
        LimitName::InotifyInstances => limits.inotify_instances,
        _ => limits.inotify_watches,
    };
    let part =
        |(name, part): &(LimitName, u64)| Held::new(*name, (*part).min(max(*name)), HeldBy::UserNamespace);
    parts().iter().map(part).collect()
}

/// The file below [`SETTINGS`] that sets a limit.
pub(super) fn setting(name: LimitName) -> Option<&'static str> {
    QUOTAS.iter().find(|quota| quota.name == name).map(|quota| quota.setting)
}

/// One sandbox's share of each quota of this user. Cached: every start of a run asks for it.
fn parts() -> &'static [(LimitName, u64)] {
    static PARTS: OnceLock<Vec<(LimitName, u64)>> = OnceLock::new();
    PARTS.get_or_init(|| {
        let part = |quota: &Quota| {
            let own = number(&Path::new(SETTINGS).join(quota.setting))?;
            let whole = number(Path::new(quota.machine)).map_or(own, |machine| machine.min(own));
            Some((quota.name, (whole / USER_SHARE_DIVISOR).max(1)))
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
    fn a_sandbox_gets_a_share_of_the_user_quota_within_the_limit() {
        let whole = number(Path::new(QUOTAS[0].machine)).unwrap();
        let value = |limits: &Limits| {
            let all = held(limits);
            let named = |held: &&Held| held.name == LimitName::InotifyInstances;
            all.iter().find(named).map(|held| held.value).unwrap()
        };
        let default = value(&Limits::default());
        assert!(default >= 1 && default <= whole / USER_SHARE_DIVISOR + 1, "{default} of {whole}");
        assert_eq!(value(&Limits { inotify_instances: 1, ..Limits::default() }), 1);
    }
}
