//! One of the processes that race for an approval in this crate's tests. It opens a store, says `ready`, and then
//! consumes what it is told to on standard input, one line each: `APPROVAL RUN NOW WAIT`, the wait in microseconds.

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::error::Error;
use std::io::BufRead as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use herma_core::approval::ApprovalStore;
use herma_store::SqliteStore;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let store: Box<dyn ApprovalStore> = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sqlite", file] => Box::new(SqliteStore::open(Path::new(file))?),
        _ => return Err("approval-racer sqlite FILE".into()),
    };
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let [id, run, now, wait] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("`{line}` is not APPROVAL RUN NOW WAIT").into());
        };
        sleep(Duration::from_micros(wait.parse()?));
        let moved = store.consume(id.parse()?, run.parse()?, now.parse()?)?;
        println!("{moved:?}");
    }
    Ok(())
}
