//! Runs orders through `RunService`, as a server would: the tests speak to it by lines and kill it.
//!
//! ```text
//! run-service HERMA HOME USER_HOME PATH MAX_CONCURRENT
//! in:  run CONTRACT SCRIPT        out: submitted RUN
//!      cancel RUN                      event RUN TYPE
//!                                      closed RUN STATUS
//! ```

#![allow(clippy::disallowed_macros, reason = "it answers on standard output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use herma_core::egress::EgressMode;
use herma_core::engine::EngineName;
use herma_core::{Contract, RunId};
use herma_evidence::RunUpdate;
use herma_harness::{
    Installation, Order, RunHandle, RunService, SecretSource, Settings, SystemClock, recover,
};
use herma_home::HomePlace;

type Handles = Arc<Mutex<BTreeMap<RunId, RunHandle>>>;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let [herma, home, user_home, search_path, max_concurrent] = args.as_slice() else {
        return Err("run-service HERMA HOME USER_HOME PATH MAX_CONCURRENT".into());
    };
    let settings = Settings {
        home: Some(HomePlace::named(home.into())),
        herma: herma.into(),
        user_home: user_home.into(),
        search_path: search_path.clone(),
        secrets: SecretSource::default(),
        docker_host: None,
        client_variables: BTreeMap::new(),
        store: herma_harness::StoreVariables::default(),
    };
    let installation = Arc::new(Installation::open(settings, Arc::new(SystemClock))?);
    recover(&installation)?;
    let max_concurrent = max_concurrent.to_string_lossy().parse()?;
    let service = RunService::new(installation).with_max_concurrent(max_concurrent);
    let handles = Handles::default();
    let mut submitting = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["run", contract, script] => {
                let order = order(Path::new(contract), Path::new(script))?;
                let (service, handles) = (service.clone(), Arc::clone(&handles));
                submitting.push(thread::spawn(move || run(&service, order, &handles)));
            }
            ["cancel", run] => {
                let handles = handles.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(handle) = handles.get(&run.parse()?) {
                    handle.cancel();
                }
            }
            _ => return Err(format!("not a command: {line}").into()),
        }
    }
    for thread in submitting {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(())
}

/// Submits one order and prints what becomes of it.
#[allow(clippy::print_stdout, reason = "the test reads it")]
fn run(service: &RunService, order: Order, handles: &Handles) {
    let handle = match service.submit(order) {
        Ok(handle) => handle,
        Err(error) => return println!("error {error}"),
    };
    let (id, updates) = (handle.id(), handle.updates());
    handles.lock().unwrap_or_else(PoisonError::into_inner).insert(id, handle);
    println!("submitted {id}");
    for update in updates {
        if let RunUpdate::Event(event) = update {
            println!("event {id} {}", event.kind);
        }
    }
    let handle = handles.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    match handle.map(RunHandle::wait) {
        Some(Ok(finished)) => println!("closed {id} {}", finished.report.status.as_str()),
        Some(Err(error)) => println!("error {error}"),
        None => {}
    }
}

fn order(contract: &Path, script: &Path) -> Result<Order, Box<dyn Error>> {
    let contract_text = std::fs::read_to_string(contract)?;
    Ok(Order {
        contract: Contract::parse(contract_text.as_bytes())?,
        contract_text,
        contract_dir: contract.parent().map_or_else(PathBuf::new, Path::to_owned),
        engine: EngineName::fake(),
        destination: None,
        script: Some(std::fs::read_to_string(script)?),
        keep_workspace: false,
        egress: EgressMode::Strict,
        resumes: None,
        fault: None,
    })
}
