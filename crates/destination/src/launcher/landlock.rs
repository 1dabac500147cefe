//! Landlock: a ruleset that a process applies to itself before it executes the command.
//!
//! It repeats the mounts' restrictions in another part of the kernel. TCP is not restricted on purpose: Landlock
//! decides by port alone, and a test that starts a server on its own loopback would fail.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// The first ABI that can scope signals and abstract sockets.
const SCOPED: ABI = ABI::V6;

/// Newest first; later ones add nothing that is used here.
const KNOWN: [ABI; 6] = [ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1];

/// A ruleset: its ABI, and the directories below which writing is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Landlock {
    pub(crate) version: LandlockAbi,
    pub(crate) write: Vec<PathBuf>,
}

/// A Landlock ABI that the kernel supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LandlockAbi(ABI);

impl LandlockAbi {
    /// The newest ABI that this kernel and herma both support; `None` without Landlock.
    pub(crate) fn of_this_kernel() -> Option<Self> {
        KNOWN.into_iter().find(|abi| ruleset(*abi).is_ok()).map(Self)
    }

    /// The ABI with this number.
    pub(super) fn numbered(number: i32) -> Option<Self> {
        KNOWN.into_iter().find(|abi| *abi as i32 == number).map(Self)
    }

    pub(crate) fn number(self) -> i32 {
        self.0 as i32
    }

    /// Whether it scopes signals and abstract sockets.
    pub(crate) fn keeps_signals(self) -> bool {
        self.0 >= SCOPED
    }
}

impl Landlock {
    /// Applies the ruleset to this process and its future children; partial enforcement is an error.
    pub(super) fn enforce(&self) -> io::Result<()> {
        let LandlockAbi(abi) = self.version;
        let build = || {
            ruleset(abi)?
                .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
                .add_rules(path_beneath_rules(&self.write, AccessFs::from_all(abi)))?
                .restrict_self()
        };
        let status = build().map_err(|error: RulesetError| io::Error::other(format!("Landlock: {error}")))?;
        if status.ruleset == RulesetStatus::FullyEnforced {
            return Ok(());
        }
        Err(io::Error::other(format!("Landlock holds only in part: {:?}", status.ruleset)))
    }
}

/// A ruleset that handles every access right of this ABI; an error if the kernel lacks one.
fn ruleset(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= SCOPED {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()
}
