//! The threads that the router runs on.
//!
//! One is what a router has unless its operator says otherwise. It is then driven by a thread of the router's own, and not
//! by a pool of one: a pool measures itself each time it falls asleep, which is twice in every call.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const NAME: &str = "herma-router";

/// The threads that the router runs on.
pub(super) struct Threads {
    runtime: Arc<Runtime>,
    /// The one thread, where there is only one, and what ends it.
    one: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Threads {
    pub(super) fn start(count: usize) -> io::Result<Self> {
        if count > 1 {
            let runtime =
                Builder::new_multi_thread().worker_threads(count).thread_name(NAME).enable_all().build()?;
            return Ok(Self { runtime: Arc::new(runtime), one: None });
        }
        let runtime = Arc::new(Builder::new_current_thread().thread_name(NAME).enable_all().build()?);
        let (stop, stopped) = oneshot::channel();
        let own = Arc::clone(&runtime);
        // It ends when it is told to, or when nobody is left who could tell it.
        let thread =
            std::thread::Builder::new().name(NAME.to_owned()).spawn(move || drop(own.block_on(stopped)))?;
        Ok(Self { runtime, one: Some((stop, thread)) })
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Stops everything. What blocks is waited for no longer than this.
    pub(super) fn stop(self, within: Duration) {
        if let Some((stop, thread)) = self.one {
            drop(stop);
            // A panic there has been told already.
            let _ = thread.join();
        }
        if let Some(runtime) = Arc::into_inner(self.runtime) {
            runtime.shutdown_timeout(within);
        }
    }
}
