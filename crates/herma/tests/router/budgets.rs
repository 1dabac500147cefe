//! Budgets of the real router: calls at once, clients that leave, and a router that is killed.

use std::time::Duration;

use herma_core::model_call::Ended;

use crate::faults::{fastrand, serve};
use crate::kit::{Router, calls, write_config};
use crate::load::{Leaves, Seen, ask, chat};

fn config(port: u16, budget: &str) -> String {
    format!(
        r#"
[upstreams.one]
provider = "compatible"
url = "http://127.0.0.1:{port}/v1"
[models.m]
chain = ["one/m"]
[clients.client]
token = {{ file = "token" }}
models = ["m"]
budget = {budget}
"#
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn many(address: &str, count: u64, make: impl Fn(u64) -> (String, Leaves)) -> Vec<Seen> {
    let asked: Vec<_> = (0..count)
        .map(|number| {
            let (body, leaves) = make(number);
            let address = address.to_owned();
            tokio::spawn(async move { ask(&address, body, leaves).await })
        })
        .collect();
    let mut seen = Vec::new();
    for one in asked {
        seen.push(one.await.unwrap());
    }
    seen
}

#[test]
fn of_200_concurrent_streams_50_pass_and_the_others_are_refused() {
    runtime().block_on(async {
        let (port, asked) = serve(0).await;
        // Every call can cost its body and 100 tokens of output; all bodies have the same size.
        let body = |number: u64| chat(1_000 + number, true, Some(100), "slowly");
        let most = body(0).len() as u64 + 100;
        let router = Router::start(&config(port, &format!("{{ tokens = {} }}", most * 50)));
        let seen = many(&router.address, 200, |number| (body(number), Leaves::AtTheEnd)).await;
        let passed: Vec<_> = seen.iter().filter(|seen| seen.status == Some(200)).collect();
        let refused: Vec<_> = seen.iter().filter(|seen| seen.status == Some(429)).collect();
        assert_eq!(passed.len() + refused.len(), 200);
        // Those that came while 50 were under way are refused; one that comes after another has ended may pass.
        assert!(passed.len() >= 50, "{} passed", passed.len());
        assert!(!refused.is_empty());
        for one in refused {
            assert!(one.body.contains("budget_exhausted"), "{}", one.body);
            assert!(one.body.contains("x-should-retry: false"), "{}", one.body);
        }
        for one in &passed {
            assert!(one.body.contains("[DONE]"), "{}", one.body);
        }
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), passed.len() as u64);
        let budget = router.budget();
        assert_eq!(budget["spent"]["tokens"], passed.len() as u64 * 15);
        assert_eq!(budget["reserved"]["tokens"], 0);
        let calls = router.calls();
        let charged: u64 = calls.iter().map(|call| call.charged.tokens).sum();
        assert_eq!(charged, passed.len() as u64 * 15);
        assert_eq!(calls.len(), 200);
        router.stop();
    });
}

#[test]
fn at_no_moment_more_is_taken_than_the_budget_has() {
    runtime().block_on(async {
        let (port, _) = serve(0).await;
        let body = |number: u64| chat(1_000 + number, true, Some(100), "slowly");
        let limit = (body(0).len() as u64 + 100) * 10;
        let router = Router::start(&config(port, &format!("{{ tokens = {limit} }}")));
        let address = router.address.clone();
        let load =
            tokio::spawn(async move { many(&address, 120, |number| (body(number), Leaves::AtTheEnd)).await });
        while !load.is_finished() {
            let budget = router.budget();
            let taken =
                budget["spent"]["tokens"].as_u64().unwrap() + budget["reserved"]["tokens"].as_u64().unwrap();
            assert!(taken <= limit, "{taken} of {limit}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        load.await.unwrap();
        router.stop();
    });
}

#[test]
fn a_request_without_a_maximum_is_lowered_to_the_remaining_budget() {
    runtime().block_on(async {
        let (port, _) = serve(0).await;
        let router = Router::start(&config(port, "{ tokens = 2000 }"));
        let first = ask(&router.address, chat(1, false, None, "a"), Leaves::AtTheEnd).await;
        assert_eq!(first.status, Some(200));
        let told = first.body.lines().find_map(|line| line.strip_prefix("x-herma-max-output: ")).unwrap();
        let told: u64 = told.trim().parse().unwrap();
        let body = chat(1, false, None, "a").len() as u64;
        assert_eq!(told, 2000 - body);
        assert!(first.body.contains("x-herma-rewrites: max_output"), "{}", first.body);
        // It ate nothing that it did not use.
        let second = ask(&router.address, chat(2, false, None, "a"), Leaves::AtTheEnd).await;
        assert_eq!(second.status, Some(200));
        assert_eq!(router.budget()["spent"]["tokens"], 30);
        router.stop();
    });
}

#[test]
fn a_client_that_leaves_leaves_nothing_reserved() {
    runtime().block_on(async {
        let (port, _) = serve(0).await;
        let router = Router::start(&config(port, "{ tokens = 10000000 }"));
        many(&router.address, 60, |number| {
            (chat(number, true, Some(50), "slowly"), Leaves::After(Duration::from_millis(fastrand(150))))
        })
        .await;
        let settled = async {
            while router.budget()["reserved"]["tokens"] != 0 || router.state()["under_way"] != 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), settled).await.expect("a reservation leaks");
        let calls = router.calls();
        assert!(calls.iter().any(|call| call.ended == Ended::ClientLeft));
        for call in &calls {
            // Where no upstream was asked yet, it is known that it cost nothing.
            let is_known = call.ended == Ended::Answered || call.attempts.is_empty();
            assert_eq!(call.settled, is_known, "{call:?}");
        }
        let charged: u64 = calls.iter().map(|call| call.charged.tokens).sum();
        assert_eq!(router.budget()["spent"]["tokens"], charged);
        router.stop();
    });
}

#[test]
fn after_a_kill_the_ledger_is_the_record_and_the_unsettled_calls_are_listed() {
    runtime().block_on(async {
        let (port, asked) = serve(0).await;
        let config = config(port, "{ tokens = 100000000 }");
        let mut directory = tempfile::tempdir().unwrap();
        write_config(directory.path(), &config);
        let (mut unsettled, mut whole) = (0, 0);
        for round in 0..12_u64 {
            let router = Router::start_in(directory);
            let address = router.address.clone();
            let load = tokio::spawn(async move {
                many(&address, 40, |number| {
                    let pace = if number % 2 == 0 { "slowly" } else { "at once" };
                    (chat(round * 100 + number, true, Some(70), pace), Leaves::AtTheEnd)
                })
                .await
            });
            tokio::time::sleep(Duration::from_millis(20 + fastrand(250))).await;
            directory = router.kill();
            let seen = load.await.unwrap();
            let router = Router::start_in(directory);
            let calls = router.calls();
            let interrupted: Vec<_> = calls.iter().filter(|call| call.ended == Ended::Interrupted).collect();
            for call in &interrupted {
                assert!(!call.settled);
                assert!(call.charged.tokens >= 70, "{call:?}");
            }
            unsettled = interrupted.len();
            // The ledger goes on from exactly what is on record.
            let charged: u64 = calls.iter().map(|call| call.charged.tokens).sum();
            assert_eq!(router.budget()["spent"]["tokens"], charged);
            assert_eq!(router.budget()["reserved"]["tokens"], 0);
            // A client that got a whole answer, with the end of its body, is on record as answered.
            let answered: Vec<_> = calls
                .iter()
                .filter(|call| call.ended == Ended::Answered)
                .map(|call| call.request.to_string())
                .collect();
            for one in seen.iter().filter(|seen| seen.body.ends_with("\r\n0\r\n\r\n")) {
                assert!(answered.contains(&one.request), "{one:?}");
                whole += 1;
            }
            directory = router.kill();
        }
        assert!(unsettled > 0, "no kill met a call under way");
        assert!(whole > 0, "no call ended before a kill");
        // No call was made that is not on record.
        let on_record: u64 = calls(directory.path()).iter().map(|call| call.charged.requests).sum();
        assert!(asked.load(std::sync::atomic::Ordering::Relaxed) <= on_record);
    });
}
