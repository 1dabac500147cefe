//! Leases on SQLite. A lease is one transaction that holds the write lock from its first statement on, so that all
//! processes together never take more than a budget has.

use std::path::Path;

use herma_core::budget::{Amount, Later, LeaseError, Leases, Limits, Scope};
use herma_core::store::StoreError;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};
use tokio::sync::{Mutex, MutexGuard};

use crate::sqlite::{SqliteStore, connect, migrate, options};

/// The leases in a store. It has a connection of its own, that is waited for without holding up a thread.
pub struct SqliteLeases {
    connection: Mutex<SqliteConnection>,
}

impl SqliteLeases {
    /// Opens the leases of a store, making the file and its tables where they are missing.
    pub async fn open(file: &Path) -> Result<Self, StoreError> {
        let mut connection = connect(&options(file)).await.map_err(crate::sqlite::error("open"))?;
        migrate(&mut connection, crate::sqlite::MIGRATIONS).await?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    async fn lock(&self) -> MutexGuard<'_, SqliteConnection> {
        self.connection.lock().await
    }
}

impl SqliteStore {
    /// The leases of the store in this file, for callers that block.
    pub fn leases(&self, file: &Path) -> Result<SqliteLeases, StoreError> {
        self.lock().runtime.block_on(SqliteLeases::open(file))
    }

    /// Says what a holder that is gone spent of budgets that are shared: what it had leased beyond that is free again.
    pub fn reconcile(&self, file: &Path, holder: &str, spent: &[(Scope, Amount)]) -> Result<(), StoreError> {
        let failed = |e: LeaseError| StoreError { doing: "reconcile a lease", cause: e.to_string() };
        self.lock().runtime.block_on(async {
            let leases = SqliteLeases::open(file).await?;
            for (scope, spent) in spent {
                leases.reconcile(scope, holder, *spent).await.map_err(failed)?;
            }
            Ok(())
        })
    }
}

impl Leases for SqliteLeases {
    fn lease<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        want: Amount,
        limits: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>> {
        let lease = async move {
            let connection = &mut *self.lock().await;
            if want.min(limits.left(taken(connection, scope).await?)).is_nothing() {
                // Who asks an exhausted budget again and again need not make others wait, or the disk write.
                return Ok(Amount::default());
            }
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
            let granted = want.min(limits.left(taken(&mut tx, scope).await?));
            add(&mut tx, scope, holder, granted).await?;
            tx.commit().await?;
            Ok(granted)
        };
        Box::pin(async move { lease.await.map_err(failed(scope, "leased")) })
    }

    fn settle<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        leased: Amount,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            let connection = &mut *self.lock().await;
            change(connection, scope, holder, spent.minus(leased), leased.minus(spent))
                .await
                .map_err(failed(scope, "settled"))
        })
    }

    fn reconcile<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        let set = "INSERT INTO leases (scope, holder, requests, tokens, micro_usd) VALUES (?, ?, ?, ?, ?) \
                   ON CONFLICT DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens, \
                   micro_usd = excluded.micro_usd";
        Box::pin(async move {
            let connection = &mut *self.lock().await;
            bind(sqlx::query(set).bind(scope.to_string()).bind(holder), spent)
                .execute(connection)
                .await
                .map(drop)
                .map_err(failed(scope, "reconciled"))
        })
    }

    fn taken<'a>(&'a self, scope: &'a Scope) -> Later<'a, Result<Amount, LeaseError>> {
        Box::pin(async move {
            let connection = &mut *self.lock().await;
            taken(connection, scope).await.map_err(failed(scope, "read"))
        })
    }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// What all holders together took.
async fn taken(connection: &mut SqliteConnection, scope: &Scope) -> Result<Amount, sqlx::Error> {
    let row = sqlx::query("SELECT requests, tokens, micro_usd FROM leased WHERE scope = ?")
        .bind(scope.to_string())
        .fetch_optional(connection)
        .await?;
    row.as_ref().map_or(Ok(Amount::default()), amount)
}

async fn add(
    connection: &mut SqliteConnection,
    scope: &Scope,
    holder: &str,
    more: Amount,
) -> Result<(), sqlx::Error> {
    change(connection, scope, holder, more, Amount::default()).await
}

/// A holder has this more, and this less of what it has.
async fn change(
    connection: &mut SqliteConnection,
    scope: &Scope,
    holder: &str,
    more: Amount,
    less: Amount,
) -> Result<(), sqlx::Error> {
    let change = "INSERT INTO leases (scope, holder, requests, tokens, micro_usd) VALUES (?1, ?2, ?3, ?4, ?5) \
                  ON CONFLICT DO UPDATE SET requests = max(0, requests + ?3 - ?6), \
                  tokens = max(0, tokens + ?4 - ?7), micro_usd = max(0, micro_usd + ?5 - ?8)";
    let query = sqlx::query(change).bind(scope.to_string()).bind(holder);
    bind(bind(query, more), less).execute(connection).await.map(drop)
}

fn bind(query: Query<'_>, amount: Amount) -> Query<'_> {
    // No amount is larger than what JSON says exactly, which is far below what a column holds.
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let Amount { micro_usd, requests, tokens } = amount.bounded();
    query.bind(number(requests)).bind(number(tokens)).bind(number(micro_usd))
}

fn amount(row: &SqliteRow) -> Result<Amount, sqlx::Error> {
    // A negative number is none that was written here: it leaves nothing to lease.
    let column = |name: &str| row.try_get::<i64, _>(name).map(|n| u64::try_from(n).unwrap_or(u64::MAX));
    Ok(Amount { micro_usd: column("micro_usd")?, requests: column("requests")?, tokens: column("tokens")? })
}

fn failed(scope: &Scope, doing: &'static str) -> impl FnOnce(sqlx::Error) -> LeaseError {
    let scope = scope.to_string();
    move |e| LeaseError { scope, doing, cause: e.to_string() }
}
