//! Where processes live. Every process that herma starts, an engine, a verification command, a probe or git,
//! starts here: there is no side door.

#![allow(clippy::disallowed_types, reason = "this crate is the one place that starts processes")]

mod capabilities;
mod catalog;
mod cgroup;
mod destination;
mod docker;
mod doors;
mod environment;
pub mod forward;
mod host;
mod job;
pub mod launcher;
pub mod leftovers;
mod limits;
mod memory;
pub mod probe;
mod proc;
mod running;
mod sandbox;
mod spawner;
mod standing;
pub mod tool;
pub mod toolchain;
mod wall;

pub use capabilities::Capabilities;
pub use catalog::{Catalog, ContainerOptions, is_available};
pub use destination::{
    Destination, Exit, Prepared, Process, Readiness, ReapError, StartError, Unready, Waiting, wait_unless,
};
pub use docker::{
    Docker, DockerOptions, ImagePin, Noticed, PIECES, Piece, PieceRow, UnpinnedImage, keeper, no_image,
};
pub use environment::{ROUTER_URL_VARIABLE, RUN_VARIABLE};
pub use host::Host;
pub use job::{BadJob, Job, JobPaths, Mount, Stdin, View};
pub use limits::{Held, HeldBy, LimitName, Limits};
pub use probe::Confinement;
pub use sandbox::{INSIDE_MARKER, Sandbox, inside_a_run};
pub use tool::{Tool, ToolError};
pub use wall::Wall;
