//! git's index file, version 2, or 3 with skip-worktree entries, without the stat data that git adds later.

use herma_core::report::Mode;

use crate::object::ObjectFormat;
use crate::tree_entry::TreeEntry;

/// Times, device, inode, owner and size: zero, so that git compares contents first.
const UNKNOWN_STAT: [u8; 24] = [0; 24];

/// The flags for extended flags and skip-worktree.
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;
/// git does not look whether the file was changed.
const ASSUME_UNCHANGED: u16 = 0x8000;

/// How git is to see an entry in the work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// As it is there.
    Plain,
    /// As if it were there: it is hidden from the agent.
    Hidden,
    /// As unchanged: there is the file of a pointer, and no filter that would make it the pointer again.
    Unchanged,
}

/// The index of these entries, which must be in path order.
pub(crate) fn index(
    format: ObjectFormat,
    entries: &[TreeEntry],
    shown: &dyn Fn(&TreeEntry) -> Shown,
) -> Vec<u8> {
    let mut bytes = b"DIRC".to_vec();
    let version: u32 = if entries.iter().any(|entry| shown(entry) == Shown::Hidden) { 3 } else { 2 };
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(entries.len()).unwrap_or(u32::MAX).to_be_bytes());
    for listed @ TreeEntry { path, entry } in entries {
        let start = bytes.len();
        let mode: u32 = match entry.mode {
            Mode::File => 0o100_644,
            Mode::Executable => 0o100_755,
            Mode::Symlink => 0o120_000,
            Mode::Submodule => 0o160_000,
        };
        bytes.extend(UNKNOWN_STAT);
        bytes.extend(mode.to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(hex::decode(&entry.id).unwrap_or_default());
        let name = path.as_bytes();
        let flags = u16::try_from(name.len().min(0xfff)).unwrap_or(0xfff);
        match shown(listed) {
            Shown::Plain => bytes.extend(flags.to_be_bytes()),
            Shown::Unchanged => bytes.extend((flags | ASSUME_UNCHANGED).to_be_bytes()),
            Shown::Hidden => {
                bytes.extend((flags | EXTENDED).to_be_bytes());
                bytes.extend(SKIP_WORKTREE.to_be_bytes());
            }
        }
        bytes.extend(name);
        // At least one NUL ends the name, and entries start at multiples of eight.
        let padding = 8 - (bytes.len() - start) % 8;
        bytes.extend(std::iter::repeat_n(0, padding));
    }
    let hash = format.hash(&[&bytes]);
    bytes.extend(hash);
    bytes
}
