//! Calls: each runs on the engine's own runtime, as one transaction, and is repeated where that is safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use herma_core::store::{StoreError, StoreErrorKind};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{Connection as _, Postgres};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::connection::CONNECT_TIMEOUT;
use super::error::{AtDatabase, CallError, at_database, failed, is_transient, late};
use crate::engine::BoxFuture;

/// How long the server has for all statements of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);
/// The pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The statements of a call. The last argument says whether an earlier attempt may have been committed.
pub(super) type Work<A, T> =
    for<'a> fn(&'a A, &'a mut PgConnection, bool) -> BoxFuture<'a, Result<T, CallError>>;

/// A kind of call.
pub(super) struct Call<A, T> {
    /// The operation, for errors.
    pub(super) name: &'static str,
    pub(super) work: Work<A, T>,
    /// Whether it is a transaction. One statement that only reads needs none.
    pub(super) is_change: bool,
    /// Whether it may be repeated after a commit whose answer was lost.
    pub(super) is_repeatable: bool,
    /// How long it is repeated while the server is out of reach.
    pub(super) patience: Duration,
}

/// How long a call waits for a server that went away: longer than a restart takes.
const PATIENCE: Duration = Duration::from_mins(1);
/// The same for events of runs in progress, which their writer appends again.
const EVENT_PATIENCE: Duration = Duration::from_secs(2);

impl<A, T> Call<A, T> {
    /// A read.
    pub(super) fn read(name: &'static str, work: Work<A, T>) -> Self {
        Self { name, work, is_change: false, is_repeatable: true, patience: PATIENCE }
    }

    /// A change that has the same result when it is made twice, or that recognises its own earlier attempt.
    pub(super) fn change(name: &'static str, work: Work<A, T>) -> Self {
        Self { name, work, is_change: true, is_repeatable: true, patience: PATIENCE }
    }

    /// A change that must not be made twice.
    pub(super) fn change_once(name: &'static str, work: Work<A, T>) -> Self {
        Self { is_repeatable: false, ..Self::change(name, work) }
    }

    /// A change that its caller makes again later.
    pub(super) fn impatient(self) -> Self {
        Self { patience: EVENT_PATIENCE, ..self }
    }

    /// A call that is never repeated, because it uses up its arguments.
    pub(super) fn without_repetition(self) -> Self {
        Self { patience: Duration::ZERO, is_repeatable: false, ..self }
    }
}

/// Makes calls.
#[derive(Clone)]
pub(super) struct Caller {
    runtime: Handle,
    shared: Arc<Shared>,
}

struct Shared {
    pool: PgPool,
    options: PgConnectOptions,
    place: String,
    /// Calls whose caller left before their end. Later calls wait for them, so that they see the result.
    abandoned: watch::Sender<isize>,
}

const RUNNING: u8 = 0;
const FINISHED: u8 = 1;
const ABANDONED: u8 = 2;

/// Counts the call as abandoned if its caller leaves before its end.
struct Waiting {
    state: Arc<AtomicU8>,
    shared: Arc<Shared>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let left = self.state.compare_exchange(RUNNING, ABANDONED, Ordering::AcqRel, Ordering::Acquire);
        if left.is_ok() {
            self.shared.abandoned.send_modify(|count| *count += 1);
        }
    }
}

/// Ends the call, also where its task is cancelled.
struct Running {
    state: Arc<AtomicU8>,
    shared: Arc<Shared>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.state.swap(FINISHED, Ordering::AcqRel) == ABANDONED {
            self.shared.abandoned.send_modify(|count| *count -= 1);
        }
    }
}

impl Caller {
    pub(super) fn new(runtime: Handle, pool: PgPool, options: PgConnectOptions, place: String) -> Self {
        let shared = Shared { pool, options, place, abandoned: watch::Sender::new(0) };
        Self { runtime, shared: Arc::new(shared) }
    }

    /// The database, without the password.
    pub(super) fn place(&self) -> &str {
        &self.shared.place
    }

    /// Makes a call. It goes on to its end if the future is dropped after it began.
    pub(super) async fn call<A, T>(&self, call: Call<A, T>, arguments: A) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (name, shared, state) = (call.name, Arc::clone(&self.shared), Arc::new(AtomicU8::new(RUNNING)));
        let (mut done, result) = oneshot::channel();
        let running = Running { state: Arc::clone(&state), shared: Arc::clone(&shared) };
        self.runtime.spawn(async move {
            let running = running;
            tokio::select! {
                () = running.shared.abandoned_calls_end() => {}
                // Its caller left before it began: then it is not made at all.
                () = done.closed() => return,
            }
            let result = running.shared.repeat(&call, &arguments, &done).await;
            drop(running);
            // A caller that left does not want it.
            let _ = done.send(result);
        });
        let _waiting = Waiting { state, shared };
        let closed = || StoreError::new(StoreErrorKind::Unavailable, name, "the store is closed");
        result.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Shared {
    async fn abandoned_calls_end(&self) {
        // The sender is a field of `self`, so that waiting cannot fail.
        let _ = self.abandoned.subscribe().wait_for(|count| *count <= 0).await;
    }

    /// Makes the call, and makes it again where that is safe and can help.
    async fn repeat<A, T>(
        &self,
        call: &Call<A, T>,
        arguments: &A,
        caller: &oneshot::Sender<Result<T, StoreError>>,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync,
        T: Send,
    {
        let (deadline, mut pause) = (Instant::now() + call.patience, FIRST_PAUSE);
        let (mut may_be_done, mut repeats) = (false, 0_u32);
        loop {
            let failure = match self.attempt(call, arguments, may_be_done).await {
                Ok(value) => {
                    if repeats > 0 {
                        tracing::info!(operation = call.name, repeats, "the store answers again");
                    }
                    return Ok(value);
                }
                Err(failure) => failure,
            };
            let (operation, error) = match failure.error {
                CallError::Store(error) => return Err(error),
                CallError::Sql(operation, error) => (operation, error),
            };
            may_be_done |= failure.at_commit;
            let is_safe = call.is_repeatable || !failure.at_commit;
            let in_time = Instant::now() + pause < deadline && !caller.is_closed();
            if !(is_safe && in_time && is_transient(&error)) {
                return Err(self.error(operation, error, may_be_done && !call.is_repeatable));
            }
            repeats += 1;
            tracing::warn!(operation, store = self.place, %error, repeats, "the store is out of reach; trying again");
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    fn error(&self, operation: &'static str, error: sqlx::Error, is_uncertain: bool) -> StoreError {
        if !is_uncertain {
            return at_database(&self.place, operation, error);
        }
        let error = AtDatabase {
            place: self.place.clone(),
            next_step: "whether the change was made is unknown: look before you make it again",
            source: Box::new(error),
        };
        StoreError::new(StoreErrorKind::Unavailable, operation, error)
    }

    async fn attempt<A, T>(&self, call: &Call<A, T>, arguments: &A, may_be_done: bool) -> Result<T, Failure>
    where
        A: Send + Sync,
        T: Send,
    {
        let mut connection = self.acquire(call.name).await?;
        let commits = AtomicBool::new(false);
        let done = transact(&mut connection, call, arguments, may_be_done, &commits);
        let no_answer = |_| Err(CallError::Sql(call.name, sqlx::Error::Io(late())));
        let result = tokio::time::timeout(ATTEMPT_TIMEOUT, done).await.unwrap_or_else(no_answer);
        result.map_err(|error| {
            if let CallError::Sql(_, error) = &error
                && is_transient(error)
            {
                connection.close_on_drop();
            }
            Failure { error, at_commit: commits.load(Ordering::Relaxed) }
        })
    }

    /// A connection of the pool. The pool does not say why it has none, so that the reason is looked for.
    async fn acquire(&self, operation: &'static str) -> Result<PoolConnection<Postgres>, Failure> {
        let error = match self.pool.acquire().await {
            Ok(connection) => return Ok(connection),
            Err(sqlx::Error::PoolTimedOut) => self.why_none().await,
            Err(error) => error,
        };
        Err(Failure { error: CallError::Sql(operation, error), at_commit: false })
    }
}

impl Shared {
    /// The reason for a pool without a connection: that of another connection that fails, or that all are in use.
    async fn why_none(&self) -> sqlx::Error {
        match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&self.options)).await {
            Ok(Ok(connection)) => {
                // It is closed either way.
                let _ = connection.close().await;
                sqlx::Error::PoolTimedOut
            }
            Ok(Err(error)) => error,
            Err(_) => sqlx::Error::Io(late()),
        }
    }
}

/// An attempt that failed, and whether the server may have committed it.
struct Failure {
    error: CallError,
    at_commit: bool,
}

async fn transact<A, T>(
    connection: &mut PgConnection,
    call: &Call<A, T>,
    arguments: &A,
    may_be_done: bool,
    commits: &AtomicBool,
) -> Result<T, CallError>
where
    A: Send + Sync,
    T: Send,
{
    if !call.is_change {
        return (call.work)(arguments, connection, may_be_done).await;
    }
    let mut transaction = connection.begin().await.map_err(failed("begin"))?;
    let value = (call.work)(arguments, &mut transaction, may_be_done).await?;
    commits.store(true, Ordering::Relaxed);
    transaction.commit().await.map_err(failed("commit"))?;
    Ok(value)
}
