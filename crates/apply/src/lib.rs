//! A person takes the verified patch of a run into their own repository, and takes it back.
//!
//! Only `cli` depends on this crate, and a test of it checks that: no server, chat, MCP tool, flow or run can apply anything.
//! The patch becomes changes of the work tree, or one commit on a new branch. The record for an undo is in herma's home before
//! the repository changes. git runs before a change only, never in a tree that has the patch.

mod base_check;
mod branch;
mod error;
mod files;
mod journal;
mod obstacles;
mod subject;
mod undo;
mod work_tree;

pub use branch::{Branched, make_branch};
pub use error::ApplyError;
pub use journal::{FileChange, FileState, Form, Record};
pub use subject::Subject;
pub use undo::{Undone, recorded, undo};
pub use work_tree::apply;

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn only_the_command_line_depends_on_this_crate() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut users = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap().map(Result::unwrap) {
            let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
            if manifest.contains("herma-apply") {
                users.push(entry.file_name().into_string().unwrap());
            }
        }
        users.sort();
        assert_eq!(users, ["apply", "cli"]);
    }
}
