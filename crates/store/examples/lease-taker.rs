//! One of the processes that lease from one budget in this crate's tests: `lease-taker URL HOLDER LIMIT SEED`. It prints
//! `ready`, and starts at a line on standard input. Then it leases tokens until the budget is exhausted, gives a part of some
//! leases back, and prints after each step how many it has.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::error::Error;
use std::time::Duration;

use herma_core::budget::{Amount, Limits, Scope};
use herma_store::Store;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, holder, limit, seed] = &arguments[..] else {
        return Err("lease-taker URL HOLDER LIMIT SEED".into());
    };
    let limits = Limits { tokens: Some(limit.parse()?), ..Limits::default() };
    let (mut random, mut has): (u64, u64) = (seed.parse::<u64>()? | 1, 0);
    let tokens = |tokens| Amount { tokens, ..Amount::default() };
    let scope = Scope::Engine("codex".into());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let leases = Store::open(&url.parse()?).await?;
        println!("ready");
        std::io::stdin().read_line(&mut String::new())?;
        loop {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let granted = leases.lease(&scope, holder, tokens(1 + random % 100), limits).await?.tokens;
            has += granted;
            println!("{has}");
            // Others get their turn.
            std::thread::sleep(Duration::from_micros(random % 1_000));
            if granted == 0 {
                return Ok(());
            }
            if random.is_multiple_of(4) {
                let spent = granted / 2;
                leases.settle(&scope, holder, tokens(granted), tokens(spent)).await?;
                has = has - granted + spent;
                println!("{has}");
            }
        }
    })
}
