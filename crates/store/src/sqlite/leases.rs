//! Leases. A lease is one transaction that holds the write lock, so that all processes together never take more than a
//! budget has.

use herma_core::budget::{Amount, Later, LeaseError, Leases, Limits, Scope};
use herma_core::store::StoreError;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::SqliteEngine;
use super::connection::begin;
use super::error::{failed, unreadable};
use super::rows::number;

impl Leases for SqliteEngine {
    fn lease<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        want: Amount,
        limits: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>> {
        let lease = async move {
            let writer = &mut *self.writer().await;
            if want.min(limits.left(taken(writer, scope).await?)).is_nothing() {
                // Repeated requests to an exhausted budget need neither the lock nor the disk.
                return Ok(Amount::default());
            }
            let mut tx = begin(writer).await?;
            let granted = want.min(limits.left(taken(&mut tx, scope).await?));
            change(&mut tx, scope, holder, granted, Amount::default()).await?;
            tx.commit().await.map_err(failed("commit"))?;
            Ok(granted)
        };
        Box::pin(async move { lease.await.map_err(not(scope, "leased")) })
    }

    fn settle<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        leased: Amount,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            let writer = &mut *self.writer().await;
            let (more, less) = (spent.minus(leased), leased.minus(spent));
            change(writer, scope, holder, more, less).await.map_err(not(scope, "settled"))
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
            let writer = &mut *self.writer().await;
            let set =
                bind(sqlx::query(set).bind(scope.to_string()).bind(holder), spent).execute(writer).await;
            set.map(drop).map_err(failed("set a lease")).map_err(not(scope, "reconciled"))
        })
    }

    fn taken<'a>(&'a self, scope: &'a Scope) -> Later<'a, Result<Amount, LeaseError>> {
        let read = async move { taken(&mut *self.reader().await?, scope).await };
        Box::pin(async move { read.await.map_err(not(scope, "read")) })
    }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// The amount that all holders together took.
async fn taken(connection: &mut SqliteConnection, scope: &Scope) -> Result<Amount, StoreError> {
    let row = sqlx::query("SELECT requests, tokens, micro_usd FROM leased WHERE scope = ?")
        .bind(scope.to_string())
        .fetch_optional(connection)
        .await
        .map_err(failed("read a budget"))?;
    row.as_ref().map_or(Ok(Amount::default()), amount)
}

/// Adds `more` to the lease of a holder and subtracts `less`.
async fn change(
    connection: &mut SqliteConnection,
    scope: &Scope,
    holder: &str,
    more: Amount,
    less: Amount,
) -> Result<(), StoreError> {
    let change = "INSERT INTO leases (scope, holder, requests, tokens, micro_usd) VALUES (?1, ?2, ?3, ?4, ?5) \
                  ON CONFLICT DO UPDATE SET requests = max(0, requests + ?3 - ?6), \
                  tokens = max(0, tokens + ?4 - ?7), micro_usd = max(0, micro_usd + ?5 - ?8)";
    let query = sqlx::query(change).bind(scope.to_string()).bind(holder);
    let changed = bind(bind(query, more), less).execute(connection).await;
    changed.map(drop).map_err(failed("change a lease"))
}

fn bind(query: Query<'_>, amount: Amount) -> Query<'_> {
    let Amount { micro_usd, requests, tokens } = amount.bounded();
    query.bind(number(requests)).bind(number(tokens)).bind(number(micro_usd))
}

fn amount(row: &SqliteRow) -> Result<Amount, StoreError> {
    // herma writes no negative number; one that is there leaves nothing to lease.
    let column = |name: &str| {
        row.try_get::<i64, _>(name).map(|n| u64::try_from(n).unwrap_or(u64::MAX)).map_err(unreadable)
    };
    Ok(Amount { micro_usd: column("micro_usd")?, requests: column("requests")?, tokens: column("tokens")? })
}

fn not(scope: &Scope, operation: &'static str) -> impl FnOnce(StoreError) -> LeaseError {
    let scope = scope.to_string();
    move |source| LeaseError { scope, operation, source }
}
