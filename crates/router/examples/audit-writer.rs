//! A process that makes calls, to be killed in this crate's tests. It sets aside, begins, ends and settles calls in
//! several threads for as long as it can, and says after each step on standard output that it was taken:
//! `began CALL`, `more CALL`, `ended CALL TOKENS`, and `refused WHY` where a step could not be taken.
//!
//! `audit-writer DIR STORE DAY` has budgets; `audit-writer DIR` has none.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use herma_core::Digest;
use herma_core::model_call::{Ended, Endpoint};
use herma_router::audit::{Audit, Beginning, Unchained};
use herma_router::budget::{Amount, Ask, Budgets, LARGEST, Limits, Reservation, Scope};
use herma_store::{Store, StoreLocation};

const THREADS: u64 = 3;
const ASK: Ask = Ask { input: 200, output: 800, least_output: 800, choices: 1, price: None };

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (dir, budgets) = match arguments[..] {
        [dir] => (dir, None),
        [dir, store, day] => (dir, Some((store, Scope::Day(day.into())))),
        _ => return Err("audit-writer DIR [STORE DAY]".into()),
    };
    let (audit, opened) = Audit::open(Path::new(dir), "run")?;
    let budgets = budgets
        .map(|(store, day)| {
            runtime.block_on(async {
                let leases = Store::open(&StoreLocation::file(store)).await?.leases();
                let budgets = Budgets::new(leases, "writer");
                // The smaller the limit, the smaller the blocks, and the more often it leases.
                let tokens = opened.charged.tokens + 32 * 5_000;
                let limits = Limits { requests: Some(LARGEST), tokens: Some(tokens), micro_usd: None };
                budgets.recover(day.clone(), limits, opened.charged).await?;
                Ok::<_, Box<dyn Error>>((budgets, day))
            })
        })
        .transpose()?;
    let writer = Arc::new(Writer { audit, budgets, seed: AtomicU64::new(opened.records) });
    let tasks: Vec<_> = (0..THREADS).map(|_| runtime.spawn(work(writer.clone()))).collect();
    for task in tasks {
        runtime.block_on(task)?;
    }
    Ok(())
}

struct Writer {
    audit: Audit,
    budgets: Option<(Budgets, Scope)>,
    seed: AtomicU64,
}

async fn work(writer: Arc<Writer>) {
    let mut refused = 0;
    while refused < 5 {
        if let Err(why) = writer.call().await {
            println!("refused {why}");
            refused += 1;
        }
        tokio::task::yield_now().await;
    }
}

impl Writer {
    async fn call(&self) -> Result<(), String> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let beginning = Beginning {
            asked: "gpt-5",
            endpoint: Endpoint::Responses,
            request: Digest::of(b"{}"),
            stream: seed.is_multiple_of(2),
            time: jiff::Timestamp::UNIX_EPOCH,
        };
        let mut reserved = self.reserve().await?;
        let began = self.audit.begin(ASK.most(ASK.output), &beginning);
        let number = match began {
            Ok(number) => number,
            Err(error) => {
                self.settle(reserved, None);
                return Err(format!("to begin: {error}"));
            }
        };
        println!("began {number}");
        let mut charged = Amount { requests: 1, tokens: seed % 1_000, micro_usd: 0 };
        let (cost, is_lost) = (charged, seed.is_multiple_of(5));
        if is_lost {
            let next = self.reserve().await?;
            self.settle(reserved, Some(ASK.most(ASK.output)));
            reserved = next;
            self.audit.more(number, ASK.most(ASK.output)).map_err(|e| format!("more: {e}"))?;
            println!("more {number}");
            charged = charged.plus(ASK.most(ASK.output));
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
        let ended = self.audit.end(Some(number), record(&beginning, charged, !is_lost));
        self.settle(reserved, Some(cost));
        ended.map_err(|e| format!("to end {number}: {e}"))?;
        println!("ended {number} {}", charged.tokens);
        Ok(())
    }

    async fn reserve(&self) -> Result<Option<Reservation>, String> {
        let Some((budgets, day)) = &self.budgets else { return Ok(None) };
        loop {
            match budgets.reserve(std::slice::from_ref(day), ASK).await {
                Ok(reserved) => return Ok(Some(reserved.reservation)),
                // The test kills it at a random time.
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    fn settle(&self, reserved: Option<Reservation>, cost: Option<Amount>) {
        if let (Some((budgets, _)), Some(reservation)) = (&self.budgets, reserved) {
            budgets.settle(reservation, cost.unwrap_or_default());
        }
    }
}

fn record(beginning: &Beginning<'_>, charged: Amount, settled: bool) -> Unchained {
    Unchained {
        answered: None,
        asked: beginning.asked.to_owned(),
        attempts: Vec::new(),
        charged,
        endpoint: beginning.endpoint,
        ended: Ended::Answered,
        first_byte_us: None,
        latency_us: 0,
        reason: None,
        request: beginning.request,
        response: None,
        rewrites: Vec::new(),
        settled,
        status: 200,
        stop: None,
        stream: beginning.stream,
        time: beginning.time,
        tool_calls: 0,
        used: None,
    }
}
