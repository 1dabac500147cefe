//! herma's home directory: where it is, who owns it, how it is laid out, and the locks and markers that live in it.

mod active;
mod consumed;
mod durable;
mod enabled;
mod error;
mod home;
mod marker;
mod ownership;
mod place;
mod removal;
mod run_dirs;

pub use active::ActiveRun;
pub use consumed::ApprovalMark;
pub use durable::{sync_dir, write_durably};
pub use enabled::EnabledEngines;
pub use error::HomeError;
pub use home::{Home, spread_out};
pub use marker::{MARKER, MARKER_TEXT};
pub use ownership::check_home;
pub use place::HomePlace;
pub use removal::remove_tree;
pub use run_dirs::RunDirs;
