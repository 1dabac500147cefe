//! The threads that the router runs on.
//!
//! The default is one, driven by a thread of the router's own and not by a pool of one: a pool updates its metrics each
//! time it parks, which is twice in every call.

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
        // It ends when the sender is used or dropped.
        let thread =
            std::thread::Builder::new().name(NAME.to_owned()).spawn(move || drop(own.block_on(stopped)))?;
        Ok(Self { runtime, one: Some((stop, thread)) })
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Stops everything. Blocking tasks are waited for no longer than this.
    pub(super) fn stop(self, within: Duration) {
        if let Some((stop, thread)) = self.one {
            drop(stop);
            // The panic hook has reported a panic there already.
            let _ = thread.join();
        }
        if let Some(runtime) = Arc::into_inner(self.runtime) {
            runtime.shutdown_timeout(within);
        }
    }
}
