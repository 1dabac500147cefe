//! Approvals. Every change of a state is one guarded update in a transaction that holds the write lock, so that of two
//! processes that want the same change, one makes it.

use herma_core::approval::{Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, Moved, Ruling};
use herma_core::contract::ContractId;
use herma_core::signed::Signed;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_core::{RunId, Timestamp};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Sqlite, Transaction};

use super::SqliteEngine;
use super::connection::begin;
use super::error::failed;
use super::rows::{column, from_json, optional, parse, text};

/// The columns that make an approval, in every query.
const COLUMNS: &str = "state, request, signed_request, ruling, consumed_by";

pub(super) async fn request(
    engine: &SqliteEngine,
    request: &ApprovalRequest,
    signed: Option<&Signed<ApprovalRequest>>,
) -> Result<(), StoreError> {
    let insert = sqlx::query(
        "INSERT INTO approvals (approval_id, short, contract_id, state, expires_at, request, signed_request, seq) \
         VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM approvals))",
    )
    .bind(request.id.to_string())
    .bind(request.id.short())
    .bind(request.binding.contract_id.as_str())
    .bind(ApprovalState::Requested.as_str())
    .bind(nanoseconds(request.expires_at))
    .bind(text(request)?)
    .bind(signed.map(text).transpose()?);
    let writer = &mut *engine.writer().await;
    insert.execute(writer).await.map(drop).map_err(failed("record a request"))
}

pub(super) async fn rule(
    engine: &SqliteEngine,
    ruling: &Signed<Ruling>,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    const OPERATION: &str = "record a ruling";
    let Ruling { id, answer, request, .. } = &ruling.record;
    let answered = match answer {
        Answer::Granted => ApprovalState::Granted,
        Answer::Denied => ApprovalState::Denied,
    };
    let writer = &mut *engine.writer().await;
    let mut tx = begin(writer).await?;
    // The ruling contains the request that the approver saw; the stored one must be the same.
    let update = sqlx::query(
        "UPDATE approvals SET state = ?, ruling = ? \
         WHERE approval_id = ? AND state = 'requested' AND expires_at > ? AND request = ?",
    )
    .bind(answered.as_str())
    .bind(text(ruling)?)
    .bind(id.to_string())
    .bind(nanoseconds(now))
    .bind(text(request)?);
    let changed = update.execute(&mut *tx).await.map_err(failed(OPERATION))?;
    let moved = moved(&mut tx, changed.rows_affected(), *id, now).await?;
    tx.commit().await.map_err(failed("commit"))?;
    if moved == Moved::Stood(ApprovalState::Requested) {
        let why = format!("it is about another request than the one that the store has as {id}");
        return Err(StoreError::new(StoreErrorKind::Conflict, OPERATION, why));
    }
    Ok(moved)
}

pub(super) async fn consume(
    engine: &SqliteEngine,
    id: ApprovalId,
    run: RunId,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    let writer = &mut *engine.writer().await;
    let mut tx = begin(writer).await?;
    let update = sqlx::query(
        "UPDATE approvals SET state = 'consumed', consumed_by = ? \
         WHERE approval_id = ? AND state = 'granted' AND expires_at > ?",
    )
    .bind(run.to_string())
    .bind(id.to_string())
    .bind(nanoseconds(now));
    let changed = update.execute(&mut *tx).await.map_err(failed("consume an approval"))?;
    let moved = moved(&mut tx, changed.rows_affected(), id, now).await?;
    tx.commit().await.map_err(failed("commit"))?;
    Ok(moved)
}

pub(super) async fn expire(engine: &SqliteEngine, now: Timestamp) -> Result<(), StoreError> {
    let writer = &mut *engine.writer().await;
    let expired = sqlx::query(
        "SELECT 1 FROM approvals WHERE state IN ('requested', 'granted') AND expires_at <= ? LIMIT 1",
    );
    let expired = expired.bind(nanoseconds(now)).fetch_optional(&mut *writer).await;
    if expired.map_err(failed("look for expired approvals"))?.is_none() {
        // In most cases there is none, and the write lock is not needed.
        return Ok(());
    }
    let update = sqlx::query(
        "UPDATE approvals SET state = 'expired' \
         WHERE state IN ('requested', 'granted') AND expires_at <= ?",
    );
    let update = update.bind(nanoseconds(now)).execute(writer).await;
    update.map(drop).map_err(failed("expire approvals"))
}

pub(super) async fn granted(engine: &SqliteEngine) -> Result<Vec<Approval>, StoreError> {
    // The first condition is that of a partial index.
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals WHERE state IN ('requested', 'granted') AND state = 'granted'"
    );
    let reader = &mut *engine.reader().await?;
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(reader).await;
    rows.map_err(failed("list the granted approvals"))?.iter().map(approval).collect()
}

pub(super) async fn find(engine: &SqliteEngine, part: &str) -> Result<Vec<Approval>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals \
         WHERE (approval_id >= ?1 AND approval_id < ?1 || '~') OR short = ?1 LIMIT 2"
    );
    let reader = &mut *engine.reader().await?;
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(part).fetch_all(reader).await;
    rows.map_err(failed("find an approval"))?.iter().map(approval).collect()
}

pub(super) async fn list(
    engine: &SqliteEngine,
    contract: Option<&ContractId>,
    limit: u32,
) -> Result<Vec<Approval>, StoreError> {
    let of = if contract.is_some() { "WHERE contract_id = ?" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM approvals {of} ORDER BY seq DESC LIMIT ?");
    let mut select = sqlx::query(AssertSqlSafe(sql));
    if let Some(contract) = contract {
        select = select.bind(contract.as_str());
    }
    let reader = &mut *engine.reader().await?;
    let rows = select.bind(i64::from(limit)).fetch_all(reader).await;
    rows.map_err(failed("list the approvals"))?.iter().map(approval).collect()
}

/// The result of a guarded update that changed this many rows. Without a change, the approval's state is the reason; one
/// whose time is over becomes `expired`.
async fn moved(
    tx: &mut Transaction<'_, Sqlite>,
    changed: u64,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    if changed > 0 {
        return Ok(Moved::Done);
    }
    sqlx::query(
        "UPDATE approvals SET state = 'expired' \
         WHERE approval_id = ? AND state IN ('requested', 'granted') AND expires_at <= ?",
    )
    .bind(id.to_string())
    .bind(nanoseconds(now))
    .execute(&mut **tx)
    .await
    .map_err(failed("expire an approval"))?;
    let row = sqlx::query("SELECT state FROM approvals WHERE approval_id = ?")
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await
        .map_err(failed("find an approval"))?;
    let Some(row) = row else { return Ok(Moved::Unknown) };
    Ok(Moved::Stood(parse(&column(&row, "state")?)?))
}

/// The approval of a row.
fn approval(row: &SqliteRow) -> Result<Approval, StoreError> {
    Ok(Approval {
        request: from_json(&column(row, "request")?)?,
        signed_request: optional(row, "signed_request")?.map(|text| from_json(&text)).transpose()?,
        state: parse(&column(row, "state")?)?,
        ruling: optional(row, "ruling")?.map(|text| from_json(&text)).transpose()?,
        consumed_by: optional(row, "consumed_by")?.map(|text| parse(&text)).transpose()?,
    })
}

/// The time as a number. A time after the year 2262 becomes the largest number.
fn nanoseconds(time: Timestamp) -> i64 {
    let time = time.as_nanosecond();
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}
