//! The location of a PostgreSQL database: a URL without a password, and the password apart from it.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use herma_core::secret::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

/// The port of a URL that names none.
const DEFAULT_PORT: u16 = 5432;

/// Characters that a URL does not contain as they are. More than the standard says, which does no harm.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'/');
/// The same where a slash separates.
const ENCODED_PART: &AsciiSet = &ENCODED.add(b'/');

/// A database of a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct PostgresLocation {
    /// Where the server listens.
    pub host: PostgresHost,
    /// Its port, which is also in the name of its socket.
    pub port: u16,
    /// The role that herma connects as.
    pub user: String,
    /// The database.
    pub database: String,
    /// Whether the connection is encrypted and the server's certificate and name are verified. Always, unless the server
    /// is on this machine.
    pub is_verified: bool,
    /// A file with certificates of authorities that are trusted in addition to the public ones.
    pub root_certificates: Option<PathBuf>,
    /// The password, where the server asks for one.
    pub password: Option<Secret<String>>,
}

/// Where a PostgreSQL server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostgresHost {
    /// A host name or an IP address.
    Tcp(String),
    /// The directory of its Unix socket.
    Socket(PathBuf),
}

impl PostgresHost {
    /// Whether no packet to it leaves this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Socket(_) => true,
            Self::Tcp(name) if name == "localhost" => true,
            Self::Tcp(name) => name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        }
    }
}

/// Two locations are equal if they name the same database for the same role. The password is no part of that.
impl PartialEq for PostgresLocation {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for PostgresLocation {}

/// The URL that `parse` reads. It contains no password.
impl fmt::Display for PostgresLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |text| utf8_percent_encode(text, ENCODED_PART);
        let path = |path: &Path| utf8_percent_encode(&path.to_string_lossy(), ENCODED).to_string();
        let (user, database) = (part(&self.user), part(&self.database));
        let mut query = Vec::new();
        match &self.host {
            PostgresHost::Tcp(name) => {
                let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
                write!(f, "postgres://{user}@{name}:{}/{database}", self.port)?;
            }
            PostgresHost::Socket(directory) => {
                write!(f, "postgres://{user}@localhost:{}/{database}", self.port)?;
                query.push(format!("host={}", path(directory)));
            }
        }
        if self.is_verified && self.host.is_local() {
            query.push("sslmode=verify-full".to_owned());
        }
        if let Some(file) = &self.root_certificates {
            query.push(format!("sslrootcert={}", path(file)));
        }
        if query.is_empty() { Ok(()) } else { write!(f, "?{}", query.join("&")) }
    }
}

/// Reads a URL. An error shows none of its parts: each of them can be a password that was written in the wrong place.
pub(super) fn parse(text: &str) -> Result<PostgresLocation, String> {
    let bad = |what: &str| format!("the location {what}: expected `postgres://USER@HOST:PORT/DATABASE`");
    let url = Url::parse(text).map_err(|error| bad(&format!("is no URL ({error})")))?;
    if url.password().is_some() {
        return Err("the location contains a password: remove it there, and name its source with `store.password` in \
                    settings.yaml, with HERMA_STORE_PASSWORD_FILE or with HERMA_STORE_PASSWORD"
            .to_owned());
    }
    if url.fragment().is_some() {
        return Err(bad("has a `#`"));
    }
    let decoded = |text: &str, what: &str| {
        let text = percent_decode_str(text)
            .decode_utf8()
            .map_err(|_| bad(&format!("has {what} that is no text")))?;
        if text.contains(|c: char| c.is_control()) {
            return Err(bad(&format!("has {what} with a control character")));
        }
        Ok(text.into_owned())
    };
    let user = decoded(url.username(), "a user")?;
    if user.is_empty() {
        return Err(bad("names no user"));
    }
    let database = decoded(url.path().trim_start_matches('/'), "a database")?;
    if database.is_empty() {
        return Err(bad("names no database"));
    }
    let host = decoded(url.host_str().unwrap_or_default(), "a host")?;
    let mut host = match host.trim_start_matches('[').trim_end_matches(']') {
        path if path.starts_with('/') => Some(PostgresHost::Socket(PathBuf::from(path))),
        "" => None,
        name => Some(PostgresHost::Tcp(name.to_owned())),
    };
    let (mut is_verified, mut root_certificates) = (false, None);
    for (key, value) in url.query_pairs() {
        match (&*key, &*value) {
            ("host", directory) if directory.starts_with('/') => {
                host = Some(PostgresHost::Socket(PathBuf::from(directory)));
            }
            ("sslmode", "verify-full") => is_verified = true,
            ("sslmode", _) => {
                return Err("the location has an `sslmode` other than `verify-full`: remove it; herma always verifies a \
                            server that is not on this machine"
                    .to_owned());
            }
            ("sslrootcert", file) if file.starts_with('/') => root_certificates = Some(PathBuf::from(file)),
            _ => {
                return Err(
                    "the location has a parameter that herma does not know: expected `host=/DIRECTORY`, \
                            `sslmode=verify-full` or `sslrootcert=/FILE`"
                        .to_owned(),
                );
            }
        }
    }
    let host = host.ok_or_else(|| bad("names no host"))?;
    is_verified |= !host.is_local();
    if is_verified && matches!(host, PostgresHost::Socket(_)) {
        return Err("the location asks for TLS on a Unix socket: remove `sslmode`".to_owned());
    }
    let port = url.port().unwrap_or(DEFAULT_PORT);
    Ok(PostgresLocation { host, port, user, database, is_verified, root_certificates, password: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_or_socket_and_reads_back() {
        let at = |host: &str| PostgresHost::Tcp(host.to_owned());
        let socket = PostgresHost::Socket(PathBuf::from("/run/pg"));
        for (url, host, port, is_verified) in [
            ("postgres://herma@db.example/herma", at("db.example"), 5432, true),
            ("postgresql://herma@db.example:6000/herma", at("db.example"), 6000, true),
            ("postgres://herma@10.0.0.1/herma", at("10.0.0.1"), 5432, true),
            ("postgres://herma@[2001:db8::1]:6/herma", at("2001:db8::1"), 6, true),
            ("postgres://herma@localhost/herma", at("localhost"), 5432, false),
            ("postgres://herma@127.0.0.1/herma", at("127.0.0.1"), 5432, false),
            ("postgres://herma@[::1]/herma", at("::1"), 5432, false),
            ("postgres://herma@127.0.0.1/herma?sslmode=verify-full", at("127.0.0.1"), 5432, true),
            ("postgres://herma@%2Frun%2Fpg:6/herma", socket.clone(), 6, false),
            ("postgres://herma@localhost:6/herma?host=/run/pg", socket, 6, false),
        ] {
            let location = parse(url).unwrap();
            assert_eq!((&location.host, location.port), (&host, port), "{url}");
            assert_eq!(location.is_verified, is_verified, "{url}");
            assert_eq!((&*location.user, &*location.database), ("herma", "herma"));
            assert_eq!(parse(&location.to_string()).unwrap(), location, "{location}");
        }
        let odd = parse("postgres://a%40b@db/c%2Fd%3F?sslrootcert=/etc/ca.pem").unwrap();
        assert_eq!((&*odd.user, &*odd.database), ("a@b", "c/d?"));
        assert_eq!(odd.root_certificates, Some(PathBuf::from("/etc/ca.pem")));
        assert_eq!(parse(&odd.to_string()).unwrap(), odd);
    }

    #[test]
    fn a_url_that_would_weaken_the_connection_or_show_a_password_is_refused() {
        for (url, why) in [
            ("postgres://herma:hunter2@db/herma", "contains a password"),
            ("postgres://herma@db/herma?password=hunter2", "a parameter that herma does not know"),
            ("postgres://herma@db/herma?sslmode=disable", "other than `verify-full`"),
            ("postgres://herma@db/herma?sslmode=hunter2", "other than `verify-full`"),
            ("postgres://herma@db/herma?options=hunter2", "a parameter that herma does not know"),
            ("postgres://herma@db/herma?host=hunter2", "a parameter that herma does not know"),
            ("postgres://herma@localhost/herma?host=/run&sslmode=verify-full", "TLS on a Unix socket"),
            ("postgres://db/hunter2", "names no user"),
            ("postgres://hunter2@db", "names no database"),
            ("postgres:///herma?host=/run", "names no user"),
            ("postgres://herma@db:hunter2/herma", "is no URL"),
            ("postgres://herma@db/herma#hunter2", "has a `#`"),
            ("postgres://her%0ama@db/hunter2", "control character"),
        ] {
            let error = parse(url).unwrap_err();
            assert!(error.contains(why) && !error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn a_location_shows_no_password() {
        let mut location = parse("postgres://herma@db/herma").unwrap();
        location.password = Some(Secret::new("hunter2".to_owned()));
        for text in [format!("{location}"), format!("{location:?}"), format!("{location:#?}")] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
