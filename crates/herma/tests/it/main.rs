//! Runs the real herma binary, from outside, and looks at what it leaves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod acp;
mod admissions;
mod apply;
mod approvals;
mod approver;
mod attempts;
mod bad_input;
mod case;
mod clean_targets;
mod cli;
mod clock;
mod compare;
mod crash;
mod crash_landing;
mod destinations;
mod do_task;
mod docker;
mod dry_run;
mod egress;
mod engines;
mod environment_builds;
mod environment_definitions;
mod environment_rebuild;
mod environment_shell;
mod environments;
mod error_table;
mod escape;
mod export;
mod failure_matrix;
mod fresh_checkout;
mod full_disk;
mod gc;
mod health;
mod history;
mod home;
mod home_files;
mod hostile;
mod hostile_names;
mod interrupted;
mod kept_workspaces;
mod kit;
mod ladder;
mod landing;
#[path = "../scale/large_target.rs"]
mod large_target;
mod large_targets;
mod lfs;
mod limits;
mod lists;
mod logging;
mod logs;
mod models;
mod outcome;
mod output;
mod paths;
mod permissions;
mod policy;
#[path = "../../../store/tests/it/postgres_server.rs"]
mod postgres_server;
mod quickstart;
mod race;
mod recursion;
mod router;
mod service;
mod store;
mod store_events;
mod submodules;
mod summary;
mod tamper;
mod targets;
mod touched;
mod trust_chain;
mod trust_taken_away;
mod verification_files;
