//! herma's home directory: its location, ownership and layout, and the locks and markers in it.

mod active;
mod consumed;
mod durable;
mod enabled;
mod error;
mod home;
mod landing_lock;
mod marker;
mod ownership;
mod place;
mod removal;
mod retention;
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
pub use retention::RemovedBundle;
pub use run_dirs::RunDirs;
