//! A process that appends events in this crate's tests: `event-appender URL RUN COUNT`. It prints `ready`, starts at a line on
//! standard input, appends one event at a time, and prints the number of each.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::error::Error;

use herma_core::store::EventRow;
use herma_store::BlockingStore;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, run, count] = &arguments[..] else { return Err("event-appender URL RUN COUNT".into()) };
    let store = BlockingStore::open(&url.parse()?)?;
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    for seq in 0..count.parse()? {
        let (kind, line) = ("engine.message".to_owned(), format!("{{\"seq\":{seq}}}"));
        let row = EventRow { run_id: run.parse()?, seq, kind, line };
        store.call(|store| store.append_events(std::slice::from_ref(&row)))?;
        println!("{seq}");
    }
    Ok(())
}
