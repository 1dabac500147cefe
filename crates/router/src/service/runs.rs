//! The admitted runs, by token, with their in-flight calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use herma_core::Digest;
use herma_core::secret::Secret;
use tokio::sync::Notify;

use super::connection::HangUp;
use crate::audit::Audit;
use crate::grant::Grant;

/// The most refused models, and budgets, that are noted per run.
const MAX_NOTED: usize = 32;

/// An admitted run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: Arc<str>,
    grant: RwLock<Arc<Grant>>,
    pub(super) audit: Audit,
    /// Its connections, closed when it ends.
    connections: Mutex<HashMap<u64, Arc<HangUp>>>,
    /// The number of in-flight calls, with [`ENDED`] where none may begin any more.
    under_way: AtomicUsize,
    /// Notified when the last call of an ended run is over.
    last_is_over: Notify,
    refusals: Mutex<Refusals>,
    engine_open: AtomicBool,
}

/// The flag of an ended run, beside the number of its calls.
const ENDED: usize = 1 << (usize::BITS - 1);

/// The refused requests of a run, each once, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Models that were requested and are not admitted.
    pub models: Vec<String>,
    /// Exhausted budgets: scope and unit.
    pub budgets: Vec<String>,
}

impl Run {
    pub(super) fn new(grant: Grant, audit: Audit) -> Self {
        Self {
            name: grant.run.clone(),
            grant: RwLock::new(Arc::new(grant)),
            audit,
            connections: Mutex::default(),
            under_way: AtomicUsize::new(0),
            last_is_over: Notify::new(),
            refusals: Mutex::default(),
            engine_open: AtomicBool::new(false),
        }
    }

    pub(super) fn grant(&self) -> Arc<Grant> {
        self.grant.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces its grant.
    pub(super) fn change(&self, grant: Grant) {
        *self.grant.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(grant);
    }

    /// Whether the budget of its engine was opened.
    pub(super) fn is_engine_open(&self) -> bool {
        self.engine_open.load(Ordering::Acquire)
    }

    pub(super) fn set_engine_open(&self) {
        self.engine_open.store(true, Ordering::Release);
    }

    /// Begins a call. False if the run has ended: its record is closed.
    pub(super) fn begin(&self) -> bool {
        let one_more = |under_way| (under_way & ENDED == 0).then_some(under_way + 1);
        self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    pub(super) fn end(&self) {
        if self.under_way.fetch_sub(1, Ordering::AcqRel) == ENDED + 1 {
            self.last_is_over.notify_waiters();
        }
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire) & !ENDED
    }

    /// Closes its connections and waits until each of its calls is recorded.
    pub(super) async fn hang_up(&self) {
        self.under_way.fetch_or(ENDED, Ordering::AcqRel);
        for connection in lock(&self.connections).values() {
            connection.request();
        }
        loop {
            let mut told = pin!(self.last_is_over.notified());
            // Enabled before the check, so that no notification is missed.
            told.as_mut().enable();
            if self.under_way() == 0 {
                return;
            }
            told.await;
        }
    }

    pub(super) fn connected(&self, id: u64, hang_up: &Arc<HangUp>) {
        lock(&self.connections).entry(id).or_insert_with(|| hang_up.clone());
    }

    pub(super) fn disconnected(&self, id: u64) {
        lock(&self.connections).remove(&id);
    }

    pub(super) fn note_model(&self, asked: &str) {
        note(&mut lock(&self.refusals).models, asked);
    }

    pub(super) fn note_budget(&self, exhausted: &str) {
        note(&mut lock(&self.refusals).budgets, exhausted);
    }

    pub(super) fn refusals(&self) -> Refusals {
        lock(&self.refusals).clone()
    }
}

fn note(noted: &mut Vec<String>, what: &str) {
    if noted.len() < MAX_NOTED && !noted.iter().any(|known| known == what) {
        noted.push(what.to_owned());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs by token. Only digests of tokens are kept: the time of a lookup reveals nothing about a token.
#[derive(Debug, Default)]
pub(super) struct Runs {
    by_token: RwLock<HashMap<Digest, Arc<Run>>>,
    next_connection: AtomicU64,
}

impl Runs {
    /// Adds a run. False where another run has the token.
    pub(super) fn insert(&self, token: &Secret<String>, run: Arc<Run>) -> bool {
        let digest = Digest::of(token.expose().as_bytes());
        match self.by_token.write().unwrap_or_else(PoisonError::into_inner).entry(digest) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(run);
                true
            }
        }
    }

    pub(super) fn holder(&self, token: &[u8]) -> Option<Arc<Run>> {
        let digest = Digest::of(token);
        self.by_token.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }

    pub(super) fn named(&self, name: &str) -> Option<Arc<Run>> {
        let runs = self.by_token.read().unwrap_or_else(PoisonError::into_inner);
        runs.values().find(|run| &*run.name == name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Run>> {
        self.by_token.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Replaces tokens atomically: two runs may swap theirs. Changes nothing, and gives false, where two runs would have the
    /// same token.
    pub(super) fn give_tokens<'a>(
        &self,
        tokens: impl Iterator<Item = (&'a Arc<str>, &'a Secret<String>)>,
    ) -> bool {
        let given: HashMap<_, _> =
            tokens.map(|(name, token)| (name, Digest::of(token.expose().as_bytes()))).collect();
        let mut runs = self.by_token.write().unwrap_or_else(PoisonError::into_inner);
        let held = runs.iter().map(|(held, run)| (*given.get(&run.name).unwrap_or(held), run.clone()));
        let changed: HashMap<_, _> = held.collect();
        let is_right = changed.len() == runs.len();
        if is_right {
            *runs = changed;
        }
        is_right
    }

    /// Removes a run.
    pub(super) fn remove(&self, name: &str) -> Option<Arc<Run>> {
        let mut runs = self.by_token.write().unwrap_or_else(PoisonError::into_inner);
        let token = runs.iter().find(|(_, run)| &*run.name == name).map(|(token, _)| *token)?;
        runs.remove(&token)
    }

    pub(super) fn connection_id(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }
}

/// A random token.
pub(super) fn new_token() -> Result<Secret<String>, getrandom::Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)?;
    let mut token = String::from("herma-");
    for byte in random {
        let _ = write!(token, "{byte:02x}");
    }
    Ok(Secret::new(token))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::budget::Limits;

    fn run(name: &str, dir: &tempfile::TempDir) -> Run {
        let grant = Grant {
            run: Arc::from(name),
            engine: None,
            models: BTreeMap::new(),
            reaches: Vec::new(),
            limits: Limits::default(),
        };
        let (audit, _) = Audit::open(dir.path(), name).unwrap();
        Run::new(grant, audit)
    }

    #[test]
    fn tokens_can_be_swapped_and_never_have_two_holders() {
        let runs = Runs::default();
        let token = |token: &str| Secret::new(token.to_owned());
        let dirs: Vec<_> = (0..3).map(|_| tempfile::TempDir::new().unwrap()).collect();
        for (name, dir) in ["a", "b", "c"].into_iter().zip(&dirs) {
            assert!(runs.insert(&token(name), Arc::new(run(name, dir))));
        }
        let held = || {
            ["a", "b", "c", "d"].map(|token| runs.holder(token.as_bytes()).map(|run| run.name.to_string()))
        };
        let give = |given: [(&str, &str); 2]| {
            let given = given.map(|(name, given)| (Arc::from(name), token(given)));
            runs.give_tokens(given.iter().map(|(name, token)| (name, token)))
        };
        let of = |names: [&str; 4]| names.map(|name| (!name.is_empty()).then(|| name.to_owned()));
        assert!(give([("a", "b"), ("b", "a")]));
        assert_eq!(held(), of(["b", "a", "c", ""]));
        assert!(give([("a", "d"), ("c", "b")]));
        assert_eq!(held(), of(["b", "c", "", "a"]));
        for wrong in [[("a", "a"), ("nobody", "e")], [("a", "e"), ("b", "e")]] {
            assert!(!give(wrong));
            assert_eq!(held(), of(["b", "c", "", "a"]));
        }
        assert!(!runs.insert(&token("a"), runs.named("c").unwrap()));
        assert_eq!(held(), of(["b", "c", "", "a"]));
    }

    #[tokio::test]
    async fn a_run_that_has_ended_begins_no_call() {
        let dir = tempfile::TempDir::new().unwrap();
        let run = run("run", &dir);
        assert!(run.begin() && run.under_way() == 1);
        run.end();
        run.hang_up().await;
        assert!(!run.begin() && run.under_way() == 0);
    }
}
