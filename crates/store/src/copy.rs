//! Copies a store into an empty one, row by row, whatever their engines are.

use herma_core::Digest;
use herma_core::store::{StoreCounts, StoreError, StoreErrorKind};
use tokio::sync::mpsc;

use crate::handle::Store;
use crate::tables::{Table, TableRow};

/// The operation of every error here.
const OPERATION: &str = "be copied";
/// How many rows are read, sent and inserted at once.
const ROWS_AT_ONCE: u32 = 256;
/// How many such parts wait for the writer.
const WAITING_PARTS: usize = 4;

/// A part of a copy.
#[derive(Debug)]
pub enum CopyPart {
    /// Rows of a table.
    Rows(Table, Vec<TableRow>),
    /// There are no more.
    End,
}

/// The parts of a copy as they are read.
pub type CopyReceiver = mpsc::Receiver<CopyPart>;

/// Copies everything from one store into an empty one, and compares both row by row. Nothing may change the first meanwhile.
pub async fn copy(from: &Store, to: &Store) -> Result<StoreCounts, StoreError> {
    let there = to.counts().await?;
    if there != StoreCounts::default() {
        let why = "the store to copy to has rows already: name an empty database";
        return Err(StoreError::new(StoreErrorKind::Conflict, OPERATION, why));
    }
    let (sender, receiver) = mpsc::channel(WAITING_PARTS);
    let (sent, imported) = tokio::join!(send(from, sender), to.import(receiver));
    // A writer that failed closes the channel; its error says why.
    let sent = match (sent, imported) {
        (Ok(Some(digest)), Ok(())) => digest,
        (Err(error), _) | (_, Err(error)) => return Err(error),
        (Ok(None), Ok(())) => {
            return Err(StoreError::new(StoreErrorKind::Internal, OPERATION, "the writer stopped early"));
        }
    };
    let counts = to.counts().await?;
    let copied = digest(to).await?;
    if counts != from.counts().await? || copied != sent {
        let why = "the copy differs from the store that it was made of: let nothing use herma meanwhile, empty the \
                   database, and copy again";
        return Err(StoreError::new(StoreErrorKind::Conflict, OPERATION, why));
    }
    Ok(counts)
}

/// Sends every row and the end. Returns the digest over them; none if the receiver left.
async fn send(from: &Store, sender: mpsc::Sender<CopyPart>) -> Result<Option<Digest>, StoreError> {
    let mut rows = Rows::of(from);
    while let Some((table, part)) = rows.next().await? {
        if sender.send(CopyPart::Rows(table, part)).await.is_err() {
            return Ok(None);
        }
    }
    Ok(sender.send(CopyPart::End).await.is_ok().then_some(rows.digest))
}

async fn digest(store: &Store) -> Result<Digest, StoreError> {
    let mut rows = Rows::of(store);
    while rows.next().await?.is_some() {}
    Ok(rows.digest)
}

/// Reads a store part by part, with a digest over what was read.
struct Rows<'a> {
    store: &'a Store,
    tables: std::slice::Iter<'static, Table>,
    table: Option<Table>,
    last: Option<TableRow>,
    digest: Digest,
}

impl<'a> Rows<'a> {
    fn of(store: &'a Store) -> Self {
        let mut tables = const { &Table::ALL }.iter();
        let table = tables.next().copied();
        Self { store, tables, table, last: None, digest: Digest::of(b"") }
    }

    async fn next(&mut self) -> Result<Option<(Table, Vec<TableRow>)>, StoreError> {
        while let Some(table) = self.table {
            let rows = self.store.read_table(table, self.last.as_ref(), ROWS_AT_ONCE).await?;
            if rows.is_empty() {
                (self.table, self.last) = (self.tables.next().copied(), None);
                continue;
            }
            self.last = rows.last().cloned();
            let unwritable = |error| StoreError::new(StoreErrorKind::Internal, OPERATION, error);
            let text = serde_json::to_vec(&(self.digest, table.name(), &rows)).map_err(unwritable)?;
            self.digest = Digest::of(&text);
            return Ok(Some((table, rows)));
        }
        Ok(None)
    }
}

/// The error of an import whose sender left without the end of the copy.
pub(crate) fn incomplete() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, OPERATION, "the rows to copy could not all be read")
}
