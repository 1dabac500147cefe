//! The time of a start, compared to a bare bubblewrap with the same namespaces.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use herma_destination::Destination as _;

use crate::support::{JobDirs, LONG, sandbox};

/// A busy machine needs many rounds to show its best time.
const ROUNDS: usize = 200;
/// The maximum ratio to the bare start. It is about two on a quiet machine; a busy one slows whoever starts more
/// processes.
const MAX_RATIO: f64 = 5.0;

/// The namespaces and mounts that any sandbox needs, and nothing of herma's.
const BARE: &str = "--unshare-all --unshare-user --disable-userns --die-with-parent --new-session --clearenv \
                    --cap-drop ALL --uid 1000 --gid 1000 --hostname herma --ro-bind /usr /usr \
                    --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev \
                    --proc /proc --tmpfs /tmp --tmpfs /home/agent";

fn timed(mut once: impl FnMut()) -> Duration {
    let begun = Instant::now();
    once();
    begun.elapsed()
}

#[test]
fn a_start_takes_a_few_times_as_long_as_a_bare_bubblewrap() {
    let ground = JobDirs::new();
    let sandbox = sandbox();
    let job = ground.job(&["/bin/true"]);
    let ours = || {
        let mut process = sandbox.start(&job).unwrap();
        assert!(process.wait(LONG).unwrap().unwrap().success());
        process.kill_all().unwrap();
    };
    let bare = || {
        let mut command = Command::new("bwrap");
        command.args(BARE.split_whitespace()).arg("--bind").arg(ground.workspace());
        command.args(["/workspace", "--chdir", "/workspace", "--", "/bin/true"]);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    };
    // Alternating, so that other load affects both; the best of each.
    let (mut best, mut best_bare) = (Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        best = best.min(timed(ours));
        best_bare = best_bare.min(timed(bare));
        if round >= ROUNDS / 10 && best.as_secs_f64() <= best_bare.as_secs_f64() * MAX_RATIO {
            return;
        }
    }
    panic!("{best:?}, and a bare one takes {best_bare:?}");
}
