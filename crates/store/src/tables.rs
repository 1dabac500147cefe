//! The tables of a store, which every engine has with the same columns.

use sqlx::{ColumnIndex, Decode, Row, Type};

/// A table. Another that depends on it comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The index of runs.
    Runs,
    /// The events of runs.
    Events,
    /// The artifacts of runs.
    Artifacts,
    /// Approvals.
    Approvals,
    /// Budget leases.
    Leases,
    /// The usage of models.
    Usage,
}

/// One row, in the order of `Table::columns`.
pub type TableRow = Vec<TableValue>;

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum TableValue {
    /// A text, or NULL.
    Text(Option<String>),
    /// A number.
    Integer(i64),
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    is_integer: bool,
}

const fn text(name: &'static str) -> Column {
    Column { name, is_integer: false }
}

const fn integer(name: &'static str) -> Column {
    Column { name, is_integer: true }
}

const RUNS: &[Column] = &[
    text("run_id"),
    text("short"),
    text("contract_id"),
    text("contract_digest"),
    text("engine"),
    text("destination"),
    integer("stage"),
    text("started_at"),
    text("finished_at"),
    text("status"),
    text("blockers"),
    integer("seq"),
];
const EVENTS: &[Column] = &[text("run_id"), integer("seq"), text("type"), text("line")];
const ARTIFACTS: &[Column] =
    &[text("run_id"), text("path"), text("sha256"), integer("size"), text("written_at")];
const APPROVALS: &[Column] = &[
    text("approval_id"),
    text("short"),
    text("contract_id"),
    text("state"),
    integer("expires_at"),
    text("request"),
    text("signed_request"),
    text("ruling"),
    text("consumed_by"),
    integer("seq"),
];
const LEASES: &[Column] =
    &[text("scope"), text("holder"), integer("requests"), integer("tokens"), integer("micro_usd")];
const USAGE: &[Column] = &[
    text("run_id"),
    text("day"),
    text("model"),
    text("engine"),
    integer("requests"),
    integer("input_tokens"),
    integer("output_tokens"),
    integer("charged_tokens"),
    integer("micro_usd"),
    integer("unsettled"),
];

impl Table {
    /// All tables.
    pub const ALL: [Self; 6] =
        [Self::Runs, Self::Events, Self::Artifacts, Self::Approvals, Self::Leases, Self::Usage];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Artifacts => "artifacts",
            Self::Approvals => "approvals",
            Self::Leases => "leases",
            Self::Usage => "usage",
        }
    }

    /// The columns. Those of the key are the first.
    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Runs => RUNS,
            Self::Events => EVENTS,
            Self::Artifacts => ARTIFACTS,
            Self::Approvals => APPROVALS,
            Self::Leases => LEASES,
            Self::Usage => USAGE,
        }
    }

    /// The number of columns of the key.
    pub(crate) fn key_columns(self) -> usize {
        match self {
            Self::Runs | Self::Approvals => 1,
            Self::Events | Self::Artifacts | Self::Leases => 2,
            Self::Usage => 3,
        }
    }

    /// Whether the table numbers its rows in the order in which they were recorded.
    pub(crate) fn is_numbered(self) -> bool {
        matches!(self, Self::Runs | Self::Approvals)
    }

    /// The names of its columns, for a statement.
    pub(crate) fn column_list(self) -> String {
        self.columns().iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// The query for the rows after a key, or for the first ones. `parameter` writes the parameter of a number.
    pub(crate) fn select(self, is_after: bool, parameter: impl Fn(usize) -> String) -> String {
        let keys: Vec<_> = self.columns().iter().take(self.key_columns()).map(|column| column.name).collect();
        let keys = keys.join(", ");
        let parameters = |count| (1..=count).map(&parameter).collect::<Vec<_>>().join(", ");
        let (after, limit) = if is_after {
            (format!("WHERE ({keys}) > ({})", parameters(self.key_columns())), self.key_columns() + 1)
        } else {
            (String::new(), 1)
        };
        let (columns, table, limit) = (self.column_list(), self.name(), parameter(limit));
        format!("SELECT {columns} FROM {table} {after} ORDER BY {keys} LIMIT {limit}")
    }

    /// The values of a row of [`Table::select`].
    pub(crate) fn read<R>(self, row: &R) -> Result<TableRow, sqlx::Error>
    where
        R: Row,
        usize: ColumnIndex<R>,
        for<'r> Option<String>: Decode<'r, R::Database> + Type<R::Database>,
        for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    {
        let value = |(index, column): (usize, &Column)| {
            if column.is_integer {
                row.try_get(index).map(TableValue::Integer)
            } else {
                row.try_get(index).map(TableValue::Text)
            }
        };
        self.columns().iter().enumerate().map(value).collect()
    }
}
