//! The tables, and how older ones become the current ones.

use herma_core::store::StoreError;
use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;

use super::error::not_migrated;

/// The migrations, oldest first. One that was released never changes: sqlx compares its digest.
const MIGRATIONS: [(&str, &str); 1] = [("store", include_str!("../../migrations/postgres/0001_store.sql"))];

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

/// Brings the tables up to date. An advisory lock keeps other processes from doing the same meanwhile.
pub(super) async fn migrate(
    connection: &mut PgConnection,
    migrator: &Migrator,
    place: &str,
) -> Result<(), StoreError> {
    migrator.run_direct(None, connection, false).await.map_err(|error| not_migrated(place, error))
}
