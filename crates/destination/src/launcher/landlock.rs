//! Landlock: the second wall, which a process puts around itself before it becomes the command.
//!
//! It says once more what the mounts say already, in another part of the kernel. TCP is left alone on purpose: by
//! port is all that it can tell, and a test that starts a server on its own loopback would fail.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// From here on signals and abstract sockets can be kept inside.
const SCOPED: ABI = ABI::V6;

/// Newest first; what later ones add is of no use here.
const KNOWN: [ABI; 6] = [ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1];

/// The wall: which version of it, and below which places it lets writing through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Landlock {
    pub(crate) version: Version,
    pub(crate) write: Vec<PathBuf>,
}

/// A version of Landlock that the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(ABI);

impl Version {
    /// The newest version that this kernel and herma both know; `None` if it has none.
    pub(crate) fn of_this_kernel() -> Option<Self> {
        KNOWN.into_iter().find(|abi| ruleset(*abi).is_ok()).map(Self)
    }

    /// The version with this number.
    pub(super) fn numbered(number: i32) -> Option<Self> {
        KNOWN.into_iter().find(|abi| *abi as i32 == number).map(Self)
    }

    pub(crate) fn number(self) -> i32 {
        self.0 as i32
    }

    /// Whether it keeps signals and abstract sockets inside.
    pub(crate) fn keeps_signals(self) -> bool {
        self.0 >= SCOPED
    }
}

impl Landlock {
    /// Puts the wall around this process and all that it starts from now on; less than all of it is an error.
    pub(super) fn enforce(&self) -> io::Result<()> {
        let Version(abi) = self.version;
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

/// Everything that this version can forbid, forbidden; an error if the kernel does not have all of it.
fn ruleset(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= SCOPED {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()
}
