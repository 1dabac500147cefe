//! Destinations, where processes run. Every process that herma starts, an engine, a verification command, a probe or git,
//! starts here and nowhere else.

#![allow(clippy::disallowed_types, reason = "this crate is the one place that starts processes")]

mod capabilities;
mod catalog;
mod cgroup;
mod child_process;
mod destination;
mod docker;
mod enabled_layers;
mod environment;
pub mod forward;
mod host;
mod isolation_layer;
mod job;
mod landlock_canary;
pub mod launcher;
pub mod leftovers;
mod limits;
mod loopback_relay;
mod memory;
pub mod overlay;
mod pager;
pub mod probe;
mod proc;
mod sandbox;
mod spawner;
pub mod tool;
pub mod toolchain;
mod variable_names;

pub use capabilities::DestinationCapabilities;
pub use catalog::{Catalog, ContainerOptions, is_available};
pub use destination::{
    Destination, Exit, Prepared, Process, Readiness, ReapError, StartError, Unready, Waiting, wait_unless,
};
pub use docker::{
    DetectedBy, Docker, DockerOptions, ImagePin, RESTRICTIONS, Restriction, RestrictionRow, UnpinnedImage,
    keeper, no_image,
};
pub use host::Host;
pub use isolation_layer::IsolationLayer;
pub use job::{BadJob, Job, JobPaths, Mount, Stdin, View};
pub use limits::{Held, HeldBy, LimitName, Limits};
pub use overlay::Overlay;
pub use pager::Pager;
pub use probe::Confinement;
pub use sandbox::{INSIDE_MARKER, Sandbox, inside_a_run};
pub use tool::{Tool, ToolError, ToolOutput};
pub use variable_names::{ROUTER_URL_VARIABLE, RUN_VARIABLE};
