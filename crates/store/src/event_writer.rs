//! Appends events to the store in the background.

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::event::Event;
use herma_core::store::EventRow;

use crate::blocking::BlockingStore;

/// Appends the events of this process's runs to the store: in their order, as they happen, many in one transaction.
///
/// A store that fails delays no run. The rows are kept and tried again with the next event; the end of the run records all
/// its events once more ([`Engine::finish_run`](crate::Engine::finish_run)).
pub struct EventWriter {
    store: BlockingStore,
    queue: OnceLock<Option<Sender<Message>>>,
}

/// An event waits so long for others: a transaction costs far more than a row.
const BATCH_PERIOD: Duration = Duration::from_millis(100);
/// The most messages of one transaction: a writer that never catches up still writes.
const MAX_BATCH: usize = 1024;

enum Message {
    Event(Box<Event>),
    /// Drops the rows of the run that are not written yet, and then the sender.
    Finish(RunId, SyncSender<()>),
}

impl EventWriter {
    /// A writer to this store. Its thread starts with the first event.
    #[must_use]
    pub fn new(store: BlockingStore) -> Self {
        Self { store, queue: OnceLock::new() }
    }

    /// Hands an event over. It neither waits nor fails.
    pub fn append(&self, event: &Event) {
        let queue = self.queue.get_or_init(|| {
            let (sender, receiver) = mpsc::channel();
            let store = self.store.clone();
            // Without a thread the events are recorded at the end of the run.
            let thread = thread::Builder::new().name("event writer".to_owned());
            thread.spawn(move || write(&store, &receiver)).ok().map(|_| sender)
        });
        if let Some(queue) = queue {
            let _ = queue.send(Message::Event(Box::new(event.clone())));
        }
    }

    /// Writes no more events of the run, and waits for a write in progress: what records the end of the run records all of
    /// its events.
    pub fn finish(&self, run: RunId) {
        let Some(Some(queue)) = self.queue.get() else { return };
        let (done, finished) = mpsc::sync_channel(0);
        if queue.send(Message::Finish(run, done)).is_ok() {
            // The writer drops the sender, which ends this wait.
            let _ = finished.recv();
        }
    }
}

fn write(store: &BlockingStore, queue: &Receiver<Message>) {
    let mut pending: Vec<EventRow> = Vec::new();
    while let Ok(first) = queue.recv() {
        let due = Instant::now() + BATCH_PERIOD;
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(message) = next {
            match message {
                Message::Event(event) => pending.extend(EventRow::of(&event)),
                Message::Finish(run, _done) => pending.retain(|row| row.run_id != run),
            }
            taken += 1;
            let left = due.saturating_duration_since(Instant::now());
            next = if taken < MAX_BATCH { queue.recv_timeout(left).ok() } else { None };
        }
        if !pending.is_empty() && store.call(|store| store.append_events(&pending)).is_ok() {
            pending.clear();
        }
    }
}
