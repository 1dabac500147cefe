//! Tries an overlay in a job of its own: kernels, security modules and file systems differ in what they permit.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use herma_core::RunId;

use super::Sandbox;
use crate::destination::Destination as _;
use crate::job::{Job, JobPaths};
use crate::overlay::Overlay;

/// The longest time that the trial may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Removes a file of the lower directory, and makes an empty directory in its place that can be written.
const SCRIPT: &str = "cd view && for f in *; do [ -f \"$f\" ] && break; done; rm \"$f\" && mkdir \"$f\" \
                      && echo new > \"$f/new\" && [ \"$(echo \"$f\"/*)\" = \"$f/new\" ] && mv \"$f\" renamed && [ -s renamed/new ]";

/// Whether the job ends well, and what it changed is where it belongs.
pub(super) fn run(sandbox: &Sandbox, run_id: RunId, lower: &Path, scratch: &Path) -> io::Result<bool> {
    let part = |name: &str| scratch.join(name);
    for dir in [part("upper"), part("work"), part("root"), part("root/view")] {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    let overlay = Overlay {
        lower: lower.to_owned(),
        upper: part("upper"),
        work: part("work"),
        root: part("root"),
        place: "view".into(),
    };
    let argv = ["/bin/sh", "-c", SCRIPT].map(Into::into).to_vec();
    let job = Job::new(run_id, argv, JobPaths::new(part("root"))).with_overlays(vec![overlay]);
    let ended = sandbox.start(&job).ok().and_then(|mut process| {
        let ended = process.wait(TIMEOUT);
        process.kill_all().ok()?;
        ended.ok()?
    });
    let works = ended.is_some_and(|exit| exit.success())
        && part("upper/renamed/new").is_file()
        && !part("root/view/renamed").exists();
    Ok(works)
}
