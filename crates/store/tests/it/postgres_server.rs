//! A PostgreSQL server of a test process, as an ordinary user, in a temporary directory.

#![allow(clippy::disallowed_types, reason = "the tests start a server")]
#![allow(dead_code, reason = "several test programs include this file, and each uses a part of it")]

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to start.
const START: Duration = Duration::from_mins(1);

/// The role of every test, and its password where a test uses TCP.
pub(crate) const USER: &str = "herma";
pub(crate) const PASSWORD: &str = "marked-store-password";

/// The user that the server runs as: PostgreSQL refuses root.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

/// A server. It ends with this value, and with the test process however that ends.
pub(crate) struct Server {
    directory: TempDir,
    port: u16,
    user: Option<User>,
    /// A shell that waits for an order or the end of its standard input, stops the server, and at the end of the test
    /// process also removes the directory: a static value is not dropped.
    guard: Mutex<Option<Child>>,
    databases: AtomicU32,
}

/// The server that the tests of this process share.
pub(crate) fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

impl Server {
    /// Makes a cluster, and starts it with these settings beside the usual ones.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let directory = TempDir::with_prefix("herma-pg-").unwrap();
        let user = fs::metadata("/proc/self").unwrap().uid().eq(&0).then(ordinary_user);
        if let Some(User { uid, gid }) = user {
            chown(directory.path(), Some(uid), Some(gid)).unwrap();
        }
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let server = Self { directory, port, user, guard: Mutex::new(None), databases: AtomicU32::new(0) };
        let password = server.directory.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        fs::set_permissions(&password, fs::Permissions::from_mode(0o644)).unwrap();
        let mut initdb = server.command("initdb");
        initdb.args(["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-locale"]);
        initdb
            .args(["--no-sync", "--username", USER, "--pwfile"])
            .arg(&password)
            .arg("-D")
            .arg(server.data());
        succeed(&mut initdb);
        let mut config = fs::read_to_string(server.data().join("postgresql.conf")).unwrap();
        let usual =
            ["fsync = off", "full_page_writes = off", "max_connections = 200", "shared_buffers = 16MB"];
        for line in usual.iter().chain(settings) {
            config = format!("{config}\n{line}");
        }
        config = format!(
            "{config}\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\n",
            server.socket().display()
        );
        fs::write(server.data().join("postgresql.conf"), config).unwrap();
        server.resume();
        server
    }

    /// The directory of its Unix socket.
    pub(crate) fn socket(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its cluster, for files that the server reads.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Gives a file to the user of the server, for its eyes only.
    pub(crate) fn adopt(&self, file: &Path) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        if let Some(User { uid, gid }) = self.user {
            chown(file, Some(uid), Some(gid)).unwrap();
        }
    }

    /// A new database, as the URL of its store by the socket.
    pub(crate) fn database(&self) -> String {
        let name = self.database_name();
        format!("postgres://{USER}@localhost:{}/{name}?host={}", self.port, self.socket().display())
    }

    /// A new database, by TCP: the server asks for [`PASSWORD`].
    pub(crate) fn database_by_tcp(&self) -> String {
        let name = self.database_name();
        format!("postgres://{USER}@127.0.0.1:{}/{name}", self.port)
    }

    fn database_name(&self) -> String {
        let name = format!("herma_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Executes SQL as an administrator, and returns what it prints.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = self.command("psql");
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", database, "-c", sql]);
        psql.arg("-h").arg(self.socket()).arg("-p").arg(self.port.to_string());
        String::from_utf8(succeed(&mut psql).stdout).unwrap().trim().to_owned()
    }

    /// Stops it at once, as a crash does: sessions are cut off in the middle of what they do.
    pub(crate) fn stop(&self) {
        let Some(mut guard) = self.guard.lock().unwrap().take() else { return };
        let _ = guard.stdin.take().unwrap().write_all(b"keep\n");
        guard.wait().unwrap();
    }

    /// Starts it again, and waits until it answers.
    pub(crate) fn resume(&self) {
        // Immediate shutdown: the guard itself gets no signal, and outlives a test process that is killed.
        let script = "directory=$1; shift; \"$@\" >>\"$directory/log\" 2>&1 </dev/null & server=$!; \
                      read -r order; kill -QUIT $server 2>/dev/null; wait $server; \
                      [ \"$order\" = keep ] || rm -rf \"$directory\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "guard"]).arg(self.directory.path());
        shell.arg(bin().join("postgres")).arg("-D").arg(self.data());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.as_user(&mut shell);
        *self.guard.lock().unwrap() = Some(shell.spawn().unwrap());
        let deadline = Instant::now() + START;
        loop {
            let mut psql = self.command("psql");
            psql.args(["-X", "-q", "-U", USER, "-d", "postgres", "-c", "SELECT 1"]);
            psql.arg("-h").arg(self.socket()).arg("-p").arg(self.port.to_string());
            if psql.output().unwrap().status.success() {
                return;
            }
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "PostgreSQL did not start:\n{}", log());
            sleep(Duration::from_millis(50));
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(bin().join(program));
        command.current_dir(self.directory.path());
        for variable in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGOPTIONS", "PGSERVICE"] {
            command.env_remove(variable);
        }
        self.as_user(&mut command);
        command
    }

    fn as_user(&self, command: &mut Command) {
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        command.current_dir("/");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// `postgres`, which its package creates, or `nobody`.
fn ordinary_user() -> User {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let named = |name: &str| {
        let line = users.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let mut fields = line.split(':').skip(1);
        Some(User { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    };
    named("postgres").or_else(|| named("nobody")).expect("an ordinary user")
}

/// The programs of the newest server that is installed.
fn bin() -> &'static Path {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(|| {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut versions: Vec<u32> =
            versions.filter_map(|version| version.file_name().to_str()?.parse().ok()).collect();
        versions.sort_unstable();
        let newest = versions.last().expect("PostgreSQL is missing: `scripts/test` installs it");
        PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"))
    })
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
