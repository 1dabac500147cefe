//! The tables, and how older ones become the current ones.

use herma_core::store::StoreError;
use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnection;

use super::error::not_migrated;

/// The migrations, oldest first. One that was released never changes: sqlx compares its digest.
const MIGRATIONS: [(&str, &str); 6] = [
    ("runs", include_str!("../../migrations/sqlite/0001_runs.sql")),
    ("approvals", include_str!("../../migrations/sqlite/0002_approvals.sql")),
    ("leases", include_str!("../../migrations/sqlite/0003_leases.sql")),
    ("usage", include_str!("../../migrations/sqlite/0004_usage.sql")),
    ("order", include_str!("../../migrations/sqlite/0005_order.sql")),
    ("event lines", include_str!("../../migrations/sqlite/0006_event_lines.sql")),
];

/// All migrations of this version.
pub(super) fn migrator() -> Migrator {
    up_to(MIGRATIONS.len())
}

/// The first migrations, as an older version had them.
pub(super) fn up_to(count: usize) -> Migrator {
    let steps = MIGRATIONS.iter().take(count).zip(1..).map(|((name, sql), version)| {
        Migration::new(version, (*name).into(), MigrationType::Simple, SqlStr::from_static(sql), false)
    });
    Migrator::with_migrations(steps.collect())
}

/// Brings the tables up to date.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    migrator: &Migrator,
) -> Result<(), StoreError> {
    let mut result = migrator.run_direct(None, &mut *connection, false).await;
    // Of processes that use the store for the first time at once, one makes a table, and the others fail to make it. Each
    // fails at most once for every migration that another makes.
    for _ in 0..4 * MIGRATIONS.len() {
        if result.is_ok() {
            break;
        }
        result = migrator.run_direct(None, &mut *connection, false).await;
    }
    result.map_err(not_migrated)
}
