//! Connections to the server.

use std::time::Duration;

use herma_core::store::{StoreError, StoreErrorKind};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::error::{AtDatabase, at_database, late};
use crate::location::{PostgresHost, PostgresLocation};

/// The oldest server whose behaviour the suite has seen, as `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;

/// The most connections of one process. A call holds one for the length of its transaction.
const MAX_CONNECTIONS: u32 = 4;

/// How long a call waits for a connection until it looks why there is none.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the server has for one new connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The first number of the advisory locks by which processes that use the same store see each other.
pub(super) const PRESENCE: i32 = 0x6865_726D;

/// The rights of the transactions of a session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    Change,
    Read,
}

impl Access {
    fn statement(self) -> &'static str {
        match self {
            Self::Change => {
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE"
            }
            Self::Read => {
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY"
            }
        }
    }
}

/// The session: durable commits, and no lock that outlives a client whose machine is gone.
const SESSION: [&str; 4] = [
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
    "SET lock_timeout = '30s'",
    "SET statement_timeout = '50s'",
    "SET idle_in_transaction_session_timeout = '60s'",
];

/// A server that answered.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) version: String,
}

/// How to connect. Every value that sqlx would take from variables of the environment is replaced, but for the options of the session,
/// with which [`connect`] refuses to go on, and a client's certificate.
pub(super) fn options(location: &PostgresLocation) -> PgConnectOptions {
    let mode = if location.is_verified { PgSslMode::VerifyFull } else { PgSslMode::Disable };
    let password = location.password.as_ref().map_or("", |password| password.expose());
    let options = PgConnectOptions::new_without_pgpass()
        .port(location.port)
        .username(&location.user)
        .database(&location.database)
        .password(password)
        .application_name("herma")
        .ssl_mode(mode);
    let options = match &location.host {
        PostgresHost::Tcp(name) => options.host(name),
        PostgresHost::Socket(directory) => options.socket(directory),
    };
    let options = match &location.root_certificates {
        Some(file) => options.ssl_root_cert(file),
        None => options.ssl_root_cert_from_pem(Vec::new()),
    };
    options.disable_statement_logging()
}

/// Opens one connection, and looks at the server.
pub(super) async fn connect(
    options: &PgConnectOptions,
    place: &str,
) -> Result<(PgConnection, Server), StoreError> {
    const OPERATION: &str = "open";
    let failed = |error| at_database(place, OPERATION, error);
    // sqlx takes it from the environment and cannot forget it. It could lead to the tables of another schema.
    if options.get_options().is_some() {
        let source = "the variable PGOPTIONS is set, and herma chooses the options of its sessions".into();
        let error = AtDatabase { place: place.to_owned(), next_step: "unset PGOPTIONS", source };
        return Err(StoreError::new(StoreErrorKind::Incompatible, OPERATION, error));
    }
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options));
    let mut connection = connecting
        .await
        .map_err(|_| sqlx::Error::Io(late()))
        .and_then(|connected| connected)
        .map_err(failed)?;
    let row = sqlx::query(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
         current_setting('server_encoding'), pg_is_in_recovery()",
    )
    .fetch_one(&mut connection)
    .await
    .map_err(failed)?;
    let number: i32 = row.try_get(0).map_err(failed)?;
    let version: String = row.try_get(1).map_err(failed)?;
    let encoding: String = row.try_get(2).map_err(failed)?;
    let is_replica: bool = row.try_get(3).map_err(failed)?;
    let unfit = |kind, problem: String, next_step| {
        let source = problem.into();
        StoreError::new(kind, OPERATION, AtDatabase { place: place.to_owned(), next_step, source })
    };
    if number < OLDEST_SERVER {
        let problem = format!("the server is PostgreSQL {version}");
        return Err(unfit(StoreErrorKind::Incompatible, problem, "use PostgreSQL 14 or later"));
    }
    if encoding != "UTF8" {
        let problem = format!("the database has the encoding {encoding}");
        return Err(unfit(
            StoreErrorKind::Incompatible,
            problem,
            "create it with `createdb --encoding=UTF8`",
        ));
    }
    if is_replica {
        let problem = "the server is a replica, which is read-only".to_owned();
        return Err(unfit(StoreErrorKind::Unavailable, problem, "use the primary server"));
    }
    Ok((connection, Server { version }))
}

/// A pool for one process. `instance` tells its sessions from those of other processes.
pub(super) fn pool(options: PgConnectOptions, instance: i32, access: Access) -> PgPool {
    PgPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        // A call whose connection is gone is repeated; a ping before each would double the time of the others.
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for statement in [access.statement()].into_iter().chain(SESSION) {
                    sqlx::query(statement).execute(&mut *connection).await?;
                }
                let lock =
                    sqlx::query("SELECT pg_advisory_lock_shared($1, $2)").bind(PRESENCE).bind(instance);
                lock.execute(connection).await.map(drop)
            })
        })
        .connect_lazy_with(options)
}
