//! Where a store is, and which engine holds it.

mod postgres;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use herma_core::store::{StoreError, StoreErrorKind};

pub use postgres::{PostgresHost, PostgresLocation};

/// The schemes of this version, for the error about any other.
const EXPECTED: &str = "expected `sqlite:PATH` or `postgres://USER@HOST:PORT/DATABASE`";

/// The location of a store, written as a URL: `sqlite:/var/lib/herma/store.db`, `postgres://herma@db.example/herma`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreLocation {
    /// One file on this machine.
    Sqlite(PathBuf),
    /// A database of a PostgreSQL server.
    Postgres(PostgresLocation),
}

impl StoreLocation {
    /// A store in a file of this machine.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::Sqlite(path.into())
    }
}

/// The URL, which contains no password.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(location) => location.fmt(f),
        }
    }
}

impl FromStr for StoreLocation {
    type Err = StoreError;

    /// The error names the scheme only: the rest of a URL can contain a password.
    fn from_str(url: &str) -> Result<Self, StoreError> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(cannot(format!("the location has no scheme: {EXPECTED}")));
        };
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() {
                    return Err(cannot(format!("the location has no path: {EXPECTED}")));
                }
                Ok(Self::file(path))
            }
            "postgres" | "postgresql" => postgres::parse(url).map(Self::Postgres).map_err(cannot),
            other => {
                let scheme: String = other.chars().take(20).flat_map(char::escape_debug).collect();
                Err(cannot(format!("this version has no engine for the scheme `{scheme}`: {EXPECTED}")))
            }
        }
    }
}

fn cannot(why: String) -> StoreError {
    StoreError::new(StoreErrorKind::Incompatible, "be located", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_names_a_file_with_or_without_slashes() {
        for url in ["sqlite:/a/store.db", "sqlite:///a/store.db"] {
            assert_eq!(url.parse::<StoreLocation>().unwrap(), StoreLocation::file("/a/store.db"), "{url}");
        }
        assert_eq!("sqlite:b.db".parse::<StoreLocation>().unwrap(), StoreLocation::file("b.db"));
    }

    #[test]
    fn an_unknown_scheme_is_refused_without_showing_the_password() {
        let refused = |url: &str| url.parse::<StoreLocation>().unwrap_err();
        let error = refused("mysql://herma:hunter2@db/herma");
        assert_eq!(error.kind(), StoreErrorKind::Incompatible);
        let text = error.to_string();
        assert!(text.contains("`mysql`") && text.contains("sqlite:PATH"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        for url in ["", "store.db", "/a/store.db", "sqlite:", "sqlite://", "SQLITE:a", "file:a"] {
            assert_eq!(refused(url).kind(), StoreErrorKind::Incompatible, "{url}");
        }
    }
}
