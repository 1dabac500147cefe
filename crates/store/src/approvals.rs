//! Approvals on SQLite. Every move is one guarded update inside one transaction that holds the write lock from its
//! first statement on, so that of two processes that want the same move, one makes it.

use herma_core::approval::{
    Answer, Approval, ApprovalId, ApprovalRequest, ApprovalState, ApprovalStore, Moved, Ruling,
};
use herma_core::contract::ContractId;
use herma_core::signed::Signed;
use herma_core::store::StoreError;
use herma_core::{RunId, Timestamp};
use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, Row, Sqlite, Transaction};

use crate::rows::{parse, text, unreadable};
use crate::sqlite::{Inner, SqliteStore, error};

/// The columns that make an approval, in every query.
const COLUMNS: &str = "state, request, signed_request, ruling, consumed_by";

impl ApprovalStore for SqliteStore {
    fn request(
        &self,
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
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(insert.execute(connection)).map(drop).map_err(error("record a request"))
    }

    fn rule(&self, ruling: &Signed<Ruling>, now: Timestamp) -> Result<Moved, StoreError> {
        let Ruling { id, answer, request, .. } = &ruling.record;
        let answered = match answer {
            Answer::Granted => ApprovalState::Granted,
            Answer::Denied => ApprovalState::Denied,
        };
        let (about, ruling) = (text(request)?, text(ruling)?);
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(async {
            let mut tx = begin(connection).await?;
            // A word on another request than the one that stands under this name is no word on this one.
            let update = sqlx::query(
                "UPDATE approvals SET state = ?, ruling = ? \
                 WHERE approval_id = ? AND state = 'requested' AND expires_at > ? AND request = ?",
            )
            .bind(answered.as_str())
            .bind(ruling)
            .bind(id.to_string())
            .bind(nanoseconds(now))
            .bind(about);
            let changed = update.execute(&mut *tx).await.map_err(error("record a ruling"))?;
            let moved = moved(&mut tx, changed.rows_affected(), *id, now).await?;
            tx.commit().await.map_err(error("commit"))?;
            match moved {
                Moved::Stood(ApprovalState::Requested) => Err(StoreError {
                    doing: "record a ruling",
                    cause: format!("it is on another request than the one that stands as {id}"),
                }),
                moved => Ok(moved),
            }
        })
    }

    fn consume(&self, id: ApprovalId, run: RunId, now: Timestamp) -> Result<Moved, StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(async {
            let mut tx = begin(connection).await?;
            let update = sqlx::query(
                "UPDATE approvals SET state = 'consumed', consumed_by = ? \
                 WHERE approval_id = ? AND state = 'granted' AND expires_at > ?",
            )
            .bind(run.to_string())
            .bind(id.to_string())
            .bind(nanoseconds(now));
            let changed = update.execute(&mut *tx).await.map_err(error("consume an approval"))?;
            let moved = moved(&mut tx, changed.rows_affected(), id, now).await?;
            tx.commit().await.map_err(error("commit"))?;
            Ok(moved)
        })
    }

    fn expire(&self, now: Timestamp) -> Result<(), StoreError> {
        let Inner { connection, runtime } = &mut *self.lock();
        runtime.block_on(async {
            let some = sqlx::query(
                "SELECT 1 FROM approvals WHERE state IN ('requested', 'granted') AND expires_at <= ? LIMIT 1",
            );
            let some = some.bind(nanoseconds(now)).fetch_optional(&mut *connection).await;
            if some.map_err(error("look for expired approvals"))?.is_none() {
                // Most looks find nothing, and need not wait for who writes.
                return Ok(());
            }
            let update = sqlx::query(
                "UPDATE approvals SET state = 'expired' \
                 WHERE state IN ('requested', 'granted') AND expires_at <= ?",
            );
            let update = update.bind(nanoseconds(now)).execute(connection).await;
            update.map(drop).map_err(error("expire approvals"))
        })
    }

    fn granted(&self) -> Result<Vec<Approval>, StoreError> {
        // Named like this, the states are those of an index over what is not at its end.
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE state IN ('requested', 'granted') AND state = 'granted'"
        );
        let Inner { connection, runtime } = &mut *self.lock();
        let rows = runtime.block_on(sqlx::query(AssertSqlSafe(sql)).fetch_all(connection));
        rows.map_err(error("list the granted approvals"))?.iter().map(approval).collect()
    }

    fn find_approval(&self, part: &str) -> Result<Vec<Approval>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals \
             WHERE (approval_id >= ?1 AND approval_id < ?1 || '~') OR short = ?1 LIMIT 2"
        );
        let select = sqlx::query(AssertSqlSafe(sql)).bind(part);
        let Inner { connection, runtime } = &mut *self.lock();
        let rows = runtime.block_on(select.fetch_all(connection));
        rows.map_err(error("find an approval"))?.iter().map(approval).collect()
    }

    fn approvals(&self, contract: Option<&ContractId>, limit: u32) -> Result<Vec<Approval>, StoreError> {
        let of = if contract.is_some() { "WHERE contract_id = ?" } else { "" };
        let sql = format!("SELECT {COLUMNS} FROM approvals {of} ORDER BY seq DESC LIMIT ?");
        let mut select = sqlx::query(AssertSqlSafe(sql));
        if let Some(contract) = contract {
            select = select.bind(contract.as_str());
        }
        let select = select.bind(i64::from(limit));
        let Inner { connection, runtime } = &mut *self.lock();
        let rows = runtime.block_on(select.fetch_all(connection));
        rows.map_err(error("list the approvals"))?.iter().map(approval).collect()
    }
}

/// A transaction that holds the write lock from here on: nobody changes what it reads.
async fn begin(connection: &mut SqliteConnection) -> Result<Transaction<'_, Sqlite>, StoreError> {
    connection.begin_with("BEGIN IMMEDIATE").await.map_err(error("begin"))
}

/// What came of a guarded update that changed so many rows. Where it changed none, what is over is written down as
/// `expired`, and the approval's state is the reason.
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
    .map_err(error("expire an approval"))?;
    let row = sqlx::query("SELECT state FROM approvals WHERE approval_id = ?")
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await
        .map_err(error("find an approval"))?;
    let Some(row) = row else { return Ok(Moved::Unknown) };
    let state: String = row.try_get("state").map_err(|e| unreadable(&e))?;
    Ok(Moved::Stood(parse(&state)?))
}

/// Reads an approval back, as it was written.
fn approval(row: &SqliteRow) -> Result<Approval, StoreError> {
    let column = |name: &str| row.try_get::<String, _>(name).map_err(|e| unreadable(&e));
    let optional = |name: &str| row.try_get::<Option<String>, _>(name).map_err(|e| unreadable(&e));
    Ok(Approval {
        request: from_json(&column("request")?)?,
        signed_request: optional("signed_request")?.map(|text| from_json(&text)).transpose()?,
        state: parse(&column("state")?)?,
        ruling: optional("ruling")?.map(|text| from_json(&text)).transpose()?,
        consumed_by: optional("consumed_by")?.map(|text| parse(&text)).transpose()?,
    })
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| unreadable(&e))
}

/// The time as a number. What lies beyond the year 2262 is as far away as a number can say.
fn nanoseconds(time: Timestamp) -> i64 {
    let time = time.as_nanosecond();
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}
