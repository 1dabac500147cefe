//! One of the processes that race for an approval in this crate's tests: `approval-racer URL`. It opens the store, prints
//! `ready`, and consumes one approval for each line on standard input: `APPROVAL RUN NOW WAIT`, the wait in microseconds.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::error::Error;
use std::io::BufRead as _;
use std::thread::sleep;
use std::time::Duration;

use herma_store::BlockingStore;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url] = &arguments[..] else { return Err("approval-racer URL".into()) };
    let store = BlockingStore::open(&url.parse()?)?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let [id, run, now, wait] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("`{line}` is not APPROVAL RUN NOW WAIT").into());
        };
        sleep(Duration::from_micros(wait.parse()?));
        let (id, run, now) = (id.parse()?, run.parse()?, now.parse()?);
        let moved = store.call(|store| store.consume_approval(id, run, now))?;
        println!("{moved:?}");
    }
    Ok(())
}
