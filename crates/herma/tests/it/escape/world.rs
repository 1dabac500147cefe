//! A home of herma with canaries around it: what an agent must not read, write, reach or see, and whether it did.
#![allow(
    clippy::disallowed_types,
    reason = "a process of the host that no agent may touch is started from outside"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use herma_core::RunId;
use serde_json::{Value, json};

use crate::kit::{Finished, HERMA, Herma, everything_below, run_tool};

const SENTINEL: &str = include_str!("sentinel.py");
/// Becomes a user without any privilege.
const AS_NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/// As whom herma runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Own,
    Nobody,
}

type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

pub(super) struct World {
    pub(super) herma: Herma,
    own: PathBuf,
    secret: String,
    mark: String,
    other_run: RunId,
    sentinel: Child,
    /// The sentinel's own report.
    told: Value,
    tcp: [TcpListener; 2],
    udp: UdpSocket,
    sockets: [UnixListener; 3],
    /// The state that nobody may change, as it was.
    before: Vec<Picture>,
}

impl World {
    /// A home with an earlier run, and canaries. `configure` may set more of herma.
    pub(super) fn new(user: User, configure: impl FnOnce(&mut Herma)) -> Self {
        let mut herma = Herma::new();
        let own = herma.at("own");
        for dir in ["own/user", "own/drop", "own/sockets"] {
            fs::create_dir_all(herma.at(dir)).unwrap();
        }
        fs::set_permissions(herma.at("own/drop"), Permissions::from_mode(0o777)).unwrap();
        let (secret, mark) = (random("canary"), random("mark"));
        herma.file("own/user/secret", &secret);
        herma.file("own/sentinel.py", SENTINEL);
        run_tool("git", &words(&["init", "-q", "--bare", path(&herma.at("own/repository"))]), &[]);
        herma.set("HOME", herma.at("own/user"));
        herma.set_home(&own.join("home"));
        herma.set("ESCAPE_CANARY", secret.as_str());
        let binary = herma.program("own/herma", Path::new(HERMA));
        herma.set_binary(&binary);
        configure(&mut herma);
        let wrapper = if user == User::Nobody { &AS_NOBODY[..] } else { &[] };
        if user == User::Nobody {
            fs::set_permissions(herma.at(""), Permissions::from_mode(0o755)).unwrap();
            run_tool("chown", &words(&["-R", "65534:65534", path(&own)]), &[]);
            herma.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        }
        herma.wrap(wrapper);

        let ended =
            herma.run(&["run", "fixture:string-slugify", "--destination", "host", "--keep-workspace"]);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        let other_run = herma.runs()[0];
        let (sentinel, told) = sentinel(wrapper, &own, &secret, &mark);
        let mut world = Self {
            tcp: ["127.0.0.1:0", "[::1]:0"].map(|address| TcpListener::bind(address).unwrap()),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            sockets: [
                UnixListener::bind(own.join("sockets/host")).unwrap(),
                UnixListener::bind(own.join("home/admin.sock")).unwrap(),
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(&mark).unwrap()).unwrap(),
            ],
            before: Vec::new(),
            herma,
            own,
            secret,
            mark,
            other_run,
            sentinel,
            told,
        };
        world.settle();
        world
    }

    /// The last canaries, and how everything looks before an agent comes.
    fn settle(&mut self) {
        for socket in ["sockets/host", "home/admin.sock"] {
            fs::set_permissions(self.own.join(socket), Permissions::from_mode(0o777)).unwrap();
        }
        let canary = self.run_dir(self.other_run).join("workspace/canary");
        fs::write(canary, &self.secret).unwrap();
        for tcp in &self.tcp {
            tcp.set_nonblocking(true).unwrap();
        }
        self.udp.set_nonblocking(true).unwrap();
        for socket in &self.sockets {
            socket.set_nonblocking(true).unwrap();
        }
        self.before = self.pictures();
    }

    pub(super) fn run_dir(&self, run: RunId) -> PathBuf {
        self.herma.home().join("runs").join(run.to_string())
    }

    pub(super) fn port(&self) -> u16 {
        self.tcp[0].local_addr().unwrap().port()
    }

    /// Where the canaries are, as JSON: all that an agent would need. The secret itself is not in it.
    pub(super) fn described(&self, docker: Option<&Path>) -> String {
        let at = |name: &str| self.own.join(name);
        let described = json!({
            "secret": at("user/secret"), "user_home": at("user"), "home": at("home"), "outside": self.own,
            "drop": at("drop"), "repository": at("repository"), "other_run": self.run_dir(self.other_run),
            "host_socket": at("sockets/host"), "admin_socket": at("home/admin.sock"), "mark": self.mark,
            "pid": self.sentinel.id(), "shared_memory": self.told["shared_memory"], "tcp": self.port(),
            "tcp6": self.tcp[1].local_addr().unwrap().port(), "udp": self.udp.local_addr().unwrap().port(),
            "docker": docker.into_iter().collect::<Vec<_>>(), "engine": null,
        });
        assert!(!described.to_string().contains(&self.secret));
        described.to_string()
    }

    /// Plays a script in a destination. The workspace stays, so that it can be looked at.
    pub(super) fn play(&self, destination: &str, script: &Value) -> (RunId, Finished) {
        let script = self.herma.file("script.yaml", script.to_string());
        let before = self.herma.runs();
        let words =
            ["run", "fixture:string-slugify", "--json", "--keep-workspace", "--destination", destination];
        let ended = self.herma.run(&[&words[..], &["--script", path(&script)]].concat());
        let new: Vec<RunId> = self.herma.runs().into_iter().filter(|run| !before.contains(run)).collect();
        let [run] = new[..] else { panic!("expected one run, found {new:?}: {ended:#?}") };
        let bundle = self.herma.bundle(run);
        bundle.assert_whole();
        self.herma.assert_verifies(&bundle);
        (run, Finished { report: bundle.report(), ended, bundle })
    }

    fn pictures(&self) -> Vec<Picture> {
        let places = [self.own.join("user"), self.own.join("repository"), self.run_dir(self.other_run)];
        let keys = self.own.join("home/keys");
        places.iter().chain([&keys]).map(|place| everything_below(place)).collect()
    }

    /// Everything that the agent of this run touched, as seen from here. Each can be seen once.
    pub(super) fn touched(&mut self, run: RunId) -> Vec<&'static str> {
        let key = fs::read(self.own.join("home/keys/installation.key")).unwrap();
        let left = everything_below(&self.run_dir(run));
        let holds = |what: &[u8]| left.values().any(|(_, content)| contains(content, what));
        let now = self.pictures();
        let same = |place: usize| now[place] == self.before[place];
        let seen = [
            ("the secret left", holds(self.secret.as_bytes())),
            ("herma's key left", holds(&key)),
            ("the user's home", !same(0)),
            ("the repository", !same(1)),
            ("the other run", !same(2)),
            ("herma's keys", !same(3)),
            ("herma's home", self.own.join("home/egress").exists()),
            ("the shared place", fs::read_dir(self.own.join("drop")).unwrap().count() > 0),
            ("the port", self.tcp[0].accept().is_ok()),
            ("the port by IPv6", self.tcp[1].accept().is_ok()),
            ("the port for datagrams", self.udp.recv(&mut [0; 16]).is_ok()),
            ("the socket", self.sockets[0].accept().is_ok()),
            ("the admin socket", self.sockets[1].accept().is_ok()),
            ("the abstract socket", self.sockets[2].accept().is_ok()),
            ("the process, by a signal", self.own.join("hit").exists()),
            ("the process, which is dead", self.sentinel.try_wait().unwrap().is_some()),
        ];
        seen.into_iter().filter_map(|(what, touched)| touched.then_some(what)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.sentinel.kill();
        let _ = self.sentinel.wait();
    }
}

fn sentinel(wrapper: &[&str], own: &Path, secret: &str, mark: &str) -> (Child, Value) {
    let (program, hit) = (own.join("sentinel.py"), own.join("hit"));
    let all = [wrapper, &["/usr/bin/python3", path(&program), mark, path(&hit)]].concat();
    let mut child = Command::new(all[0])
        .args(&all[1..])
        .env_clear()
        .env("ESCAPE_CANARY", secret)
        .stdin(File::open(own.join("user/secret")).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

fn random(kind: &str) -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("{kind}-{:016x}{:016x}", draw(), draw())
}

fn contains(content: &[u8], what: &[u8]) -> bool {
    content.windows(what.len()).any(|part| part == what)
}

pub(super) fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn words<'a>(words: &[&'a str]) -> Vec<&'a OsStr> {
    words.iter().copied().map(OsStr::new).collect()
}
