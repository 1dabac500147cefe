//! A toolchain of the user's own, mounted, under seccomp and Landlock.

use std::path::Path;

use herma_destination::{Job, Mount};

use crate::support::{JobDirs, sandbox, tell};

#[test]
fn cargo_builds_and_runs_inside() {
    let ground = JobDirs::new();
    let bin = Path::new(env!("CARGO")).parent().unwrap();
    let prefix = bin.parent().unwrap().to_owned();
    let script = "export CARGO_HOME=$HOME/cargo && cargo init --quiet --vcs none --name tiny . \
                  && cargo run --quiet --offline && cargo test --quiet --offline >&2";
    let mounted = !prefix.starts_with("/usr");
    let job = Job {
        search_path: vec![bin.to_owned()],
        mounts: mounted.then(|| Mount { host: prefix.clone(), inside: prefix }).into_iter().collect(),
        ..ground.shell(script)
    };
    let told = tell(&sandbox(), &job);
    assert_eq!((told.stdout.as_str(), told.exit.code), ("Hello, world!\n", Some(0)), "{}", told.stderr);
}
