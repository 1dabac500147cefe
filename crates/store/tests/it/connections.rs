//! How herma connects to PostgreSQL: passwords, TLS, servers that cannot be used.

use std::fs;

use herma_core::secret::Secret;
use herma_core::store::{StoreError, StoreErrorKind};
use herma_store::{BlockingStore, StoreLocation};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::postgres_server::{PASSWORD, Server, shared};

fn open(url: &str, password: Option<&str>) -> Result<BlockingStore, StoreError> {
    let StoreLocation::Postgres(mut location) = url.parse().unwrap() else { panic!("{url}") };
    location.password = password.map(|password| Secret::new(password.to_owned()));
    BlockingStore::open(&StoreLocation::Postgres(location))
}

fn refused(url: &str, password: Option<&str>) -> StoreError {
    let error = open(url, password).err().unwrap_or_else(|| panic!("{url} was opened"));
    let all = format!("{error} {error:?}");
    assert!(!all.contains(PASSWORD) && !all.contains("wrong-password"), "{all}");
    error
}

#[test]
fn a_password_is_sent_by_tcp_and_a_wrong_one_is_refused_without_being_shown() {
    let url = shared().database_by_tcp();
    open(&url, Some(PASSWORD)).unwrap();
    for password in [Some("wrong-password"), None] {
        let error = refused(&url, password);
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("check the user, and the source of its password"), "{error}");
    }
}

#[test]
fn a_database_that_cannot_be_used_is_refused_with_the_next_step() {
    let server = shared();
    let missing = format!("postgres://herma@127.0.0.1:{}/missing", server.port());
    let error = refused(&missing, Some(PASSWORD)).to_string();
    assert!(error.contains("create the database, or correct the URL"), "{error}");

    server.sql("postgres", "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0");
    let ascii = format!("postgres://herma@127.0.0.1:{}/ascii", server.port());
    let error = refused(&ascii, Some(PASSWORD));
    assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error}");
    assert!(error.to_string().contains("--encoding=UTF8"), "{error}");

    let newer = server.database();
    drop(open(&newer, None).unwrap());
    let name = newer.rsplit('/').find_map(|part| part.split_once("?host")).unwrap().0;
    server.sql(
        name,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (99, 'later', true, '', 0)",
    );
    let error = refused(&newer, None);
    assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error}");
}

#[test]
fn a_server_is_verified_by_authority_and_name() {
    let scratch = tempfile::tempdir().unwrap();
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = scratch.path().join(name);
        fs::write(&file, issuer.pem()).unwrap();
        (issuer, file)
    };
    let ((own, own_file), (_, other_file)) = (authority("own.pem"), authority("other.pem"));
    // It exists before the server starts, which reads both files.
    let server = Server::start(&[]);
    let serve = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &own).unwrap();
        for (file, text) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
            fs::write(server.data().join(file), text).unwrap();
            server.adopt(&server.data().join(file));
        }
        server.sql("postgres", "ALTER SYSTEM SET ssl = on");
        server.stop();
        server.resume();
    };
    let url = |file: &std::path::Path| {
        format!("{}?sslmode=verify-full&sslrootcert={}", server.database_by_tcp(), file.display())
    };
    let without_tls = refused(&url(&own_file), Some(PASSWORD));
    assert_eq!(without_tls.kind(), StoreErrorKind::Unavailable, "{without_tls}");

    serve("127.0.0.1");
    open(&url(&own_file), Some(PASSWORD)).unwrap();
    let error = refused(&url(&other_file), Some(PASSWORD));
    assert!(error.to_string().contains("name its authority with `sslrootcert=/FILE`"), "{error}");

    serve("db.example");
    let error = refused(&url(&own_file), Some(PASSWORD));
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}
