//! Mixed load with upstreams that fail, clients that leave and configurations that change: nothing leaks, nothing is
//! stuck, every request is on record exactly once. `SOAK_SECONDS` says how long; `scripts/long` takes an hour.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::faults::{fastrand, serve};
use crate::kit::{Router, by_request, write_config};
use crate::load::{Leaves, Seen, ask, chat};

/// How many clients ask at once.
const CLIENTS: usize = 24;

fn config(flaky: u16, sound: u16, version: u64) -> String {
    format!(
        r#"
[limits]
threads = 2
first_byte = "2s"
idle = "2s"
max_body = "{}MiB"
[upstreams.flaky]
provider = "compatible"
url = "http://127.0.0.1:{flaky}/v1"
retry_ambiguous = {}
[upstreams.sound]
provider = "compatible"
url = "http://127.0.0.1:{sound}/v1"
[models.m]
chain = ["flaky/m", "sound/other"]
[clients.client]
token = {{ file = "token" }}
models = ["m"]
budget = {{ tokens = 900000000000 }}
"#,
        8 + version % 4,
        version.is_multiple_of(2),
    )
}

/// The resources of a process.
#[derive(Clone, Copy, Debug)]
struct Held {
    rss_kib: u64,
    files: usize,
    tasks: u64,
}

fn held(router: &Router) -> Held {
    let pid = router.pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Held {
        rss_kib: rss.trim().trim_end_matches(" kB").trim().parse().unwrap(),
        files: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
        tasks: router.state()["tasks"].as_u64().unwrap(),
    }
}

#[test]
fn nothing_leaks_nothing_is_stuck_and_every_request_is_on_record_once() {
    #[allow(clippy::disallowed_methods, reason = "a test may be told how long it takes")]
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(soak(Duration::from_secs(seconds)));
}

async fn soak(length: Duration) {
    let (flaky, _) = serve(8).await;
    let (sound, _) = serve(40).await;
    let router = Arc::new(Router::start(&config(flaky, sound, 0)));
    let (over, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(client(router.clone(), over.clone(), next.clone()))).collect();

    let started = Instant::now();
    let (mut early, mut reloads) = (None, 0);
    while started.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(700)).await;
        reloads += 1;
        // Every fifth configuration cannot be used, and changes nothing.
        let text =
            if reloads % 5 == 4 { "this = is not one".to_owned() } else { config(flaky, sound, reloads) };
        write_config(router.directory().path(), &text);
        router.signal(rustix::process::Signal::HUP);
        if early.is_none() && started.elapsed() > length / 4 {
            early = Some(held(&router));
        }
    }
    let late = held(&router);
    over.store(true, Ordering::Release);
    let mut seen: Vec<(Seen, bool)> = Vec::new();
    for client in clients {
        seen.extend(client.await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let quiet = held(&router);
    let early = early.unwrap();

    let state = router.state();
    assert_eq!(state["under_way"], 0, "{state}");
    let budget = router.budget();
    assert_eq!(budget["reserved"]["tokens"], 0, "{budget}");
    // A leak per request would have grown several times over.
    assert!(late.rss_kib < early.rss_kib + early.rss_kib / 4 + 8 * 1024, "{early:?} {late:?}");
    assert!(quiet.files <= 64, "{quiet:?}");
    assert!(quiet.tasks <= 80, "{quiet:?}");

    let calls = router.calls();
    let on_record = by_request(&calls);
    let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
    for (one, left) in &seen {
        let times = on_record.get(&one.request).copied().unwrap_or(0);
        // A client that leaves may do so before the router has read its request.
        let right = if *left { times <= 1 } else { times == 1 };
        assert!(right, "{times} times on record: {one:?}");
        *statuses.entry(format!("{:?}", one.status)).or_default() += 1;
    }
    assert_eq!(on_record.values().sum::<usize>(), calls.len());
    assert!(calls.len() <= seen.len());
    let charged: u64 = calls.iter().map(|call| call.charged.tokens).sum();
    assert_eq!(budget["spent"]["tokens"], charged);
    let stderr = router.stderr();
    assert!(stderr.contains("was read again"), "{stderr}");
    assert!(stderr.contains("stays as it was"), "{stderr}");
    let said =
        format!("{} requests, {reloads} reloads, {statuses:?}, {early:?}, {late:?}, {quiet:?}\n", seen.len());
    std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes()).unwrap();
    Arc::into_inner(router).unwrap().stop();
}

/// Asks until the test is over. Gives what it saw, and whether it left.
async fn client(router: Arc<Router>, over: Arc<AtomicBool>, next: Arc<AtomicU64>) -> Vec<(Seen, bool)> {
    let mut seen = Vec::new();
    while !over.load(Ordering::Acquire) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let pace = if fastrand(4) == 0 { "slowly" } else { "at once" };
        let body = chat(number, fastrand(2) == 0, Some(20 + fastrand(50)), pace);
        let left = fastrand(6) == 0;
        let leaves =
            if left { Leaves::After(Duration::from_millis(fastrand(120))) } else { Leaves::AtTheEnd };
        let mut one = ask(&router.address, body, leaves).await;
        one.body.truncate(0);
        seen.push((one, left));
        tokio::time::sleep(Duration::from_millis(fastrand(30))).await;
    }
    seen
}
