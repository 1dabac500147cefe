//! Leases. Every change locks the row of the scope's sum first, so that all processes together never take more than a budget
//! has, and no two of them wait for each other.

use herma_core::budget::{Amount, Later, LeaseError, Leases, Limits, Scope};
use herma_core::store::StoreError;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use super::PostgresEngine;
use super::call::Call;
use super::error::{CallError, failed, unreadable};
use super::rows::number;

/// A change of one lease.
struct Change {
    scope: String,
    holder: String,
    /// The amount that is wanted or added.
    more: Amount,
    /// The amount that is given back.
    less: Amount,
    limits: Limits,
}

impl Leases for PostgresEngine {
    fn lease<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        want: Amount,
        limits: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>> {
        let call = Call::change_once("lease", |wanted: &Change, connection, _| {
            Box::pin(async move {
                lock_scope(connection, &wanted.scope).await?;
                let granted = wanted.more.min(wanted.limits.left(taken(connection, &wanted.scope).await?));
                if !granted.is_nothing() {
                    change(connection, wanted, granted, Amount::default()).await?;
                }
                Ok(granted)
            })
        });
        let wanted = Change { limits, ..change_of(scope, holder, want, Amount::default()) };
        Box::pin(async move {
            let left = limits.left(self.taken(scope).await?);
            if want.min(left).is_nothing() {
                // Repeated requests to an exhausted budget need no lock.
                return Ok(Amount::default());
            }
            self.caller.call(call, wanted).await.map_err(not(scope, "leased"))
        })
    }

    fn settle<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        leased: Amount,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        let call = Call::change_once("settle a lease", |settled: &Change, connection, _| {
            Box::pin(async move {
                lock_scope(connection, &settled.scope).await?;
                change(connection, settled, settled.more, settled.less).await
            })
        });
        let settled = change_of(scope, holder, spent.minus(leased), leased.minus(spent));
        Box::pin(async move { self.caller.call(call, settled).await.map_err(not(scope, "settled")) })
    }

    fn reconcile<'a>(
        &'a self,
        scope: &'a Scope,
        holder: &'a str,
        spent: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        let call = Call::change("set a lease", |set: &Change, connection, _| {
            Box::pin(async move {
                lock_scope(connection, &set.scope).await?;
                let query = sqlx::query(
                    "INSERT INTO leases (scope, holder, requests, tokens, micro_usd) VALUES ($1, $2, $3, $4, $5) \
                     ON CONFLICT (scope, holder) DO UPDATE SET requests = excluded.requests, \
                     tokens = excluded.tokens, micro_usd = excluded.micro_usd",
                );
                let query =
                    bind(query.bind(&set.scope).bind(&set.holder), set.more).execute(connection).await;
                query.map(drop).map_err(failed("set a lease"))
            })
        });
        let set = change_of(scope, holder, spent, Amount::default());
        Box::pin(async move { self.caller.call(call, set).await.map_err(not(scope, "reconciled")) })
    }

    fn taken<'a>(&'a self, scope: &'a Scope) -> Later<'a, Result<Amount, LeaseError>> {
        let call =
            Call::read("read a budget", |scope: &String, connection, _| Box::pin(taken(connection, scope)));
        Box::pin(async move { self.caller.call(call, scope.to_string()).await.map_err(not(scope, "read")) })
    }
}

fn change_of(scope: &Scope, holder: &str, more: Amount, less: Amount) -> Change {
    Change { scope: scope.to_string(), holder: holder.to_owned(), more, less, limits: Limits::default() }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// Locks the sum of a scope until the end of the transaction.
async fn lock_scope(connection: &mut PgConnection, scope: &str) -> Result<(), CallError> {
    let failed = failed("lock a budget");
    let insert =
        sqlx::query("INSERT INTO leased (scope) VALUES ($1) ON CONFLICT (scope) DO NOTHING").bind(scope);
    insert.execute(&mut *connection).await.map_err(failed)?;
    let lock = sqlx::query("SELECT 1 FROM leased WHERE scope = $1 FOR UPDATE").bind(scope);
    lock.execute(connection).await.map(drop).map_err(failed)
}

/// The amount that all holders together took.
async fn taken(connection: &mut PgConnection, scope: &str) -> Result<Amount, CallError> {
    let row = sqlx::query("SELECT requests, tokens, micro_usd FROM leased WHERE scope = $1")
        .bind(scope)
        .fetch_optional(connection)
        .await
        .map_err(failed("read a budget"))?;
    Ok(row.as_ref().map_or(Ok(Amount::default()), amount)?)
}

/// Adds `more` to the lease of a holder and subtracts `less`.
async fn change(
    connection: &mut PgConnection,
    of: &Change,
    more: Amount,
    less: Amount,
) -> Result<(), CallError> {
    let change = "INSERT INTO leases AS l (scope, holder, requests, tokens, micro_usd) VALUES ($1, $2, $3, $4, $5) \
                  ON CONFLICT (scope, holder) DO UPDATE SET requests = greatest(0, l.requests + $3 - $6), \
                  tokens = greatest(0, l.tokens + $4 - $7), micro_usd = greatest(0, l.micro_usd + $5 - $8)";
    let query = sqlx::query(change).bind(&of.scope).bind(&of.holder);
    let changed = bind(bind(query, more), less).execute(connection).await;
    changed.map(drop).map_err(failed("change a lease"))
}

fn bind(query: Query<'_>, amount: Amount) -> Query<'_> {
    let Amount { micro_usd, requests, tokens } = amount.bounded();
    query.bind(number(requests)).bind(number(tokens)).bind(number(micro_usd))
}

fn amount(row: &PgRow) -> Result<Amount, StoreError> {
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
