//! A caller that leaves, such as a request whose client disconnects, drops the future of its call.

use std::time::Duration;

use herma_core::approval::{Answer, ApprovalState, Moved};
use herma_core::budget::{Amount, Limits, Scope};
use herma_core::store::RunQuery;

use crate::backend::on_every_store;
use crate::sample::{at, events, report, request, rows, ruling, run, summary};

#[test]
fn a_dropped_call_is_done_as_a_whole_or_not_at_all_and_blocks_no_other() {
    on_every_store(async |backend| {
        let store = backend.open().await;
        let scope = Scope::Engine("codex".into());
        let limits = Limits::default();
        let one = Amount { requests: 1, tokens: 1, micro_usd: 1 };
        for n in 0..200_u32 {
            let (request, summary, report) = (request(n), summary(n), report(n));
            let (ruling, events) = (ruling(&request, Answer::Granted), events(run(n), 3));
            store.request_approval(&request, None).await.unwrap();
            store.rule_on_approval(&ruling, at(10)).await.unwrap();
            let calls = async {
                let _ = store.begin_run(&summary).await;
                let _ = store.append_events(&rows(&events)).await;
                let _ = store.lease(&scope, "a", one, limits).await;
                let _ = store.consume_approval(request.id, run(n), at(20)).await;
                let _ = store.finish_run(&report, &events).await;
            };
            // Each round is cut at another point.
            let cut = Duration::from_micros(u64::from(n) * 37 % 2_000);
            let _ = tokio::time::timeout(cut, calls).await;

            let approval = store.find_approvals(&request.id.to_string()).await.unwrap().remove(0);
            let moved = store.consume_approval(request.id, run(9_999), at(20)).await.unwrap();
            match approval.state {
                ApprovalState::Granted => assert_eq!(moved, Moved::Done),
                state => assert_eq!((moved, state), (Moved::Stood(state), ApprovalState::Consumed)),
            }
            let finished = store.find_runs(&run(n).to_string()).await.unwrap();
            let ended = finished.first().is_some_and(|run| run.status.is_some());
            let stored = store.events_after(run(n), None, 9).await.unwrap();
            assert!(stored.len() == 3 || (!ended && stored.is_empty()), "{stored:?}");
        }
        let taken = store.taken(&scope).await.unwrap();
        assert_eq!((taken.requests, taken.requests), (taken.tokens, taken.micro_usd));
        let all = RunQuery { limit: 999, before: None, status: None };
        assert!(store.runs(&all).await.unwrap().len() <= 200);
    });
}
