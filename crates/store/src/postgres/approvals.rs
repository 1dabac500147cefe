//! Approvals. Every change of a state locks the row first, so that of two processes that want the same change, one makes it.

use herma_core::approval::{Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, Moved, Ruling};
use herma_core::contract::ContractId;
use herma_core::signed::Signed;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_core::{RunId, Timestamp};
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, PgRow};

use super::call::{Call, Caller};
use super::error::{CallError, failed};
use super::rows::{column, from_json, integer, optional, parse, text};

/// The columns that make an approval, in every query.
const COLUMNS: &str = "state, request, signed_request, ruling, consumed_by";

struct Requested {
    id: ApprovalId,
    contract: String,
    expires_at: i64,
    request: String,
    signed: Option<String>,
}

pub(super) async fn request(
    caller: &Caller,
    request: &ApprovalRequest,
    signed: Option<&Signed<ApprovalRequest>>,
) -> Result<(), StoreError> {
    let requested = Requested {
        id: request.id,
        contract: request.binding.contract_id.as_str().to_owned(),
        expires_at: nanoseconds(request.expires_at),
        request: text(request)?,
        signed: signed.map(text).transpose()?,
    };
    let call = Call::change("record a request", |requested: &Requested, connection, may_be_done| {
        Box::pin(async move {
            if may_be_done
                && lock(connection, requested.id).await?.is_some_and(|row| row.request == requested.request)
            {
                return Ok(());
            }
            let insert = sqlx::query(
                "INSERT INTO approvals (approval_id, short, contract_id, state, expires_at, request, signed_request) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(requested.id.to_string())
            .bind(requested.id.short())
            .bind(&requested.contract)
            .bind(ApprovalState::Requested.as_str())
            .bind(requested.expires_at)
            .bind(&requested.request)
            .bind(&requested.signed);
            insert.execute(connection).await.map(drop).map_err(failed("record a request"))
        })
    });
    caller.call(call, requested).await
}

struct Ruled {
    id: ApprovalId,
    answer: Answer,
    request: String,
    ruling: String,
    now: i64,
}

pub(super) async fn rule(
    caller: &Caller,
    ruling: &Signed<Ruling>,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    const OPERATION: &str = "record a ruling";
    let Ruling { id, answer, request, .. } = &ruling.record;
    let ruled = Ruled {
        id: *id,
        answer: *answer,
        request: text(request)?,
        ruling: text(ruling)?,
        now: nanoseconds(now),
    };
    let call = Call::change(OPERATION, |ruled: &Ruled, connection, may_be_done| {
        Box::pin(async move {
            let Some(row) = lock(connection, ruled.id).await? else { return Ok(Moved::Unknown) };
            if may_be_done && row.ruling.as_ref() == Some(&ruled.ruling) {
                return Ok(Moved::Done);
            }
            if let Some(stood) =
                stood(connection, ruled.id, &row, ApprovalState::Requested, ruled.now).await?
            {
                return Ok(stood);
            }
            // The ruling contains the request that the approver saw; the stored one must be the same.
            if row.request != ruled.request {
                let why =
                    format!("it is about another request than the one that the store has as {}", ruled.id);
                return Err(StoreError::new(StoreErrorKind::Conflict, OPERATION, why).into());
            }
            let answered = match ruled.answer {
                Answer::Granted => ApprovalState::Granted,
                Answer::Denied => ApprovalState::Denied,
            };
            sqlx::query(
                "UPDATE approvals SET state = $1, ruling = $2 WHERE approval_id = $3 AND state = 'requested'",
            )
            .bind(answered.as_str())
            .bind(&ruled.ruling)
            .bind(ruled.id.to_string())
            .execute(connection)
            .await
            .map_err(failed(OPERATION))?;
            Ok(Moved::Done)
        })
    });
    caller.call(call, ruled).await
}

pub(super) async fn consume(
    caller: &Caller,
    id: ApprovalId,
    run: RunId,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    let call = Call::change(
        "consume an approval",
        |(id, run, now): &(ApprovalId, RunId, i64), connection, may_be_done| {
            Box::pin(async move {
                let Some(row) = lock(connection, *id).await? else { return Ok(Moved::Unknown) };
                // No other call has this run: an earlier attempt of this one was committed.
                if may_be_done && row.consumed_by == Some(run.to_string()) {
                    return Ok(Moved::Done);
                }
                if let Some(stood) = stood(connection, *id, &row, ApprovalState::Granted, *now).await? {
                    return Ok(stood);
                }
                let update = sqlx::query(
                    "UPDATE approvals SET state = 'consumed', consumed_by = $1 \
                     WHERE approval_id = $2 AND state = 'granted' AND expires_at > $3",
                );
                let update = update.bind(run.to_string()).bind(id.to_string()).bind(now);
                let changed = update.execute(connection).await.map_err(failed("consume an approval"))?;
                if changed.rows_affected() == 1 {
                    return Ok(Moved::Done);
                }
                let why = "the row changed under its lock";
                Err(StoreError::new(StoreErrorKind::Internal, "consume an approval", why).into())
            })
        },
    );
    caller.call(call, (id, run, nanoseconds(now))).await
}

pub(super) async fn expire(caller: &Caller, now: Timestamp) -> Result<(), StoreError> {
    let call = Call::change("expire approvals", |now: &i64, connection, _| {
        Box::pin(async move {
            // Locked in one order, and again only if they still can expire, so that two such calls do not deadlock.
            sqlx::query(
                "UPDATE approvals SET state = 'expired' WHERE approval_id IN (SELECT approval_id FROM approvals \
                 WHERE state IN ('requested', 'granted') AND expires_at <= $1 ORDER BY approval_id FOR UPDATE)",
            )
            .bind(now)
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("expire approvals"))
        })
    });
    caller.call(call, nanoseconds(now)).await
}

pub(super) async fn granted(caller: &Caller) -> Result<Vec<Approval>, StoreError> {
    let call = Call::read("list the granted approvals", |(): &(), connection, _| {
        Box::pin(async move {
            // The first condition is that of a partial index.
            let sql = format!(
                "SELECT {COLUMNS} FROM approvals WHERE state IN ('requested', 'granted') AND state = 'granted' \
                 ORDER BY approval_id"
            );
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await;
            approvals_of(&rows.map_err(failed("list the granted approvals"))?)
        })
    });
    caller.call(call, ()).await
}

pub(super) async fn find(caller: &Caller, part: &str) -> Result<Vec<Approval>, StoreError> {
    if part.contains('\0') {
        // No name has it, and PostgreSQL takes no such text.
        return Ok(Vec::new());
    }
    let call = Call::read("find an approval", |part: &String, connection, _| {
        Box::pin(async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM approvals \
                 WHERE (approval_id >= $1 AND approval_id < $1 || '~') OR short = $1 LIMIT 2"
            );
            let rows = sqlx::query(AssertSqlSafe(sql)).bind(part).fetch_all(connection).await;
            approvals_of(&rows.map_err(failed("find an approval"))?)
        })
    });
    caller.call(call, part.to_owned()).await
}

pub(super) async fn list(
    caller: &Caller,
    contract: Option<&ContractId>,
    limit: u32,
) -> Result<Vec<Approval>, StoreError> {
    let call =
        Call::read("list the approvals", |(contract, limit): &(Option<ContractId>, i64), connection, _| {
            Box::pin(async move {
                let sql = format!(
                    "SELECT {COLUMNS} FROM approvals WHERE $1::text IS NULL OR contract_id = $1 \
                 ORDER BY seq DESC LIMIT $2"
                );
                let select = sqlx::query(AssertSqlSafe(sql))
                    .bind(contract.as_ref().map(ContractId::as_str))
                    .bind(limit);
                let rows = select.fetch_all(connection).await.map_err(failed("list the approvals"))?;
                approvals_of(&rows)
            })
        });
    caller.call(call, (contract.cloned(), i64::from(limit))).await
}

/// A row that no other transaction can change until the end of this one.
struct LockedRow {
    state: ApprovalState,
    expires_at: i64,
    request: String,
    ruling: Option<String>,
    consumed_by: Option<String>,
}

async fn lock(connection: &mut PgConnection, id: ApprovalId) -> Result<Option<LockedRow>, CallError> {
    let row = sqlx::query(
        "SELECT state, expires_at, request, ruling, consumed_by FROM approvals WHERE approval_id = $1 FOR UPDATE",
    )
    .bind(id.to_string())
    .fetch_optional(connection)
    .await
    .map_err(failed("find an approval"))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(LockedRow {
        state: parse(&column(&row, "state")?)?,
        expires_at: integer(&row, "expires_at")?,
        request: column(&row, "request")?,
        ruling: optional(&row, "ruling")?,
        consumed_by: optional(&row, "consumed_by")?,
    }))
}

/// Why a locked approval cannot be moved from this state; none if it can. One whose time is over becomes `expired`.
async fn stood(
    connection: &mut PgConnection,
    id: ApprovalId,
    row: &LockedRow,
    from: ApprovalState,
    now: i64,
) -> Result<Option<Moved>, CallError> {
    let can_expire = matches!(row.state, ApprovalState::Requested | ApprovalState::Granted);
    if can_expire && row.expires_at <= now {
        sqlx::query("UPDATE approvals SET state = 'expired' WHERE approval_id = $1")
            .bind(id.to_string())
            .execute(connection)
            .await
            .map_err(failed("expire an approval"))?;
        return Ok(Some(Moved::Stood(ApprovalState::Expired)));
    }
    Ok((row.state != from).then_some(Moved::Stood(row.state)))
}

fn approvals_of(rows: &[PgRow]) -> Result<Vec<Approval>, CallError> {
    Ok(rows.iter().map(approval).collect::<Result<_, _>>()?)
}

/// The approval of a row.
fn approval(row: &PgRow) -> Result<Approval, StoreError> {
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
