//! `herma router` as a process: keys and endpoints show nowhere, neither while it runs nor in what it leaves.

mod probe;
mod reload;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::{Herma, Started, everything_below, until};

const IN_ENVIRONMENT: &str = "sk-canary-environment-7f3a9b2c";
const IN_FILE: &str = "sk-canary-file-1d4e8f6a";
const TOKEN: &str = "token-canary-0123456789abcdef0123456789abcdef";
const BODY: &str = r#"{"model":"MODEL","stream":STREAM,"messages":[{"role":"user","content":"Hello."}]}"#;

/// An upstream that says back what it was sent, key and all.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut seen, mut part) = (Vec::new(), [0; 4096]);
            while !seen.ends_with(b"}]}") {
                match stream.read(&mut part) {
                    Ok(0) | Err(_) => break,
                    Ok(read) => seen.extend_from_slice(&part[..read]),
                }
            }
            let seen = String::from_utf8_lossy(&seen);
            let key =
                seen.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization")).unwrap();
            let said = format!(r#"{{"error":{{"message":"not allowed: {key} at http://{address}"}}}}"#);
            let answer = format!(
                "HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\nx-request-id: {key}\r\ncontent-length: {}\r\n\r\n{said}",
                said.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// The secrets, which must not appear anywhere.
fn secrets(address: SocketAddr) -> [String; 5] {
    [
        IN_ENVIRONMENT.to_owned(),
        IN_FILE.to_owned(),
        TOKEN.to_owned(),
        address.to_string(),
        "canary".to_owned(),
    ]
}

fn silent(address: SocketAddr, what: &str, said: &[u8]) {
    let said = String::from_utf8_lossy(said);
    for secret in secrets(address) {
        assert!(!said.contains(&secret), "{secret} in {what}: {said}");
    }
}

/// The binary with a configuration beside it, and the secrets where that says they lie.
fn configured(address: SocketAddr) -> (Herma, PathBuf) {
    let mut herma = Herma::new();
    herma.set("UPSTREAM_KEY", IN_ENVIRONMENT);
    herma.set("UPSTREAM_URL", format!("http://{address}/"));
    herma.set("AGENT_TOKEN", TOKEN);
    let key = herma.at("upstream.key");
    fs::write(&key, IN_FILE).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let file = herma.at("router.toml");
    fs::write(
        &file,
        r#"state = "state"
[listen]
address = "unix:agent.sock"
[admin]
address = "unix:admin.sock"
[upstreams.one]
provider = "compatible"
key = { env = "UPSTREAM_KEY" }
url = { env = "UPSTREAM_URL" }
[upstreams.two]
provider = "compatible"
key = { file = "upstream.key" }
url = { env = "UPSTREAM_URL" }
[models.m]
chain = ["one/m"]
[models.n]
chain = ["two/n"]
[clients.agent]
token = { env = "AGENT_TOKEN" }
models = ["m", "n"]
"#,
    )
    .unwrap();
    (herma, file)
}

/// The whole answer to a request.
fn ask(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn call(model: &str, stream: bool) -> String {
    let body = BODY.replace("MODEL", model).replace("STREAM", &stream.to_string());
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn get(method: &str, path: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
    )
}

/// The process that was started with this file.
fn process_with(file: &Path) -> Pid {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let named = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(file.to_str().unwrap())
    };
    let mut found = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(named);
    let pid = found.next().unwrap();
    assert_eq!(found.next(), None);
    Pid::from_raw(pid).unwrap()
}

fn started(herma: &Herma, file: &Path) -> (Started, Pid) {
    let started = herma.start(&["router".as_ref(), "--config".as_ref(), file.as_os_str()]);
    // A router that ended before may have left the files of its sockets.
    until("the router listens", || {
        ["agent.sock", "admin.sock"].iter().all(|socket| UnixStream::connect(herma.at(socket)).is_ok())
    });
    (started, process_with(file))
}

#[test]
fn neither_key_nor_endpoint_nor_token_shows_anywhere() {
    let address = echo();
    let (herma, file) = configured(address);
    let (router, pid) = started(&herma, &file);
    let (agent, admin) = (herma.at("agent.sock"), herma.at("admin.sock"));
    for model in ["m", "n", "other"] {
        for stream in [false, true] {
            let answer = ask(&agent, &call(model, stream));
            assert!(answer.starts_with("HTTP/1.1 40"), "{answer}");
            assert_eq!(answer.contains("[removed by herma]"), model != "other", "{answer}");
            silent(address, "an answer", answer.as_bytes());
        }
    }
    for path in ["/metrics", "/v1/models", "/healthz", "/readyz", "/state", "/reload"] {
        silent(address, path, ask(&agent, &get("GET", path)).as_bytes());
    }
    for path in ["/state", "/budgets", "/upstreams", "/in-flight", "/health"] {
        silent(address, path, ask(&admin, &get("GET", path)).as_bytes());
    }
    // A configuration with a key in the wrong place is reported, and changes nothing.
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, good.replace("{ env = \"UPSTREAM_KEY\" }", &format!("\"{IN_ENVIRONMENT}\""))).unwrap();
    let refused = ask(&admin, &get("POST", "/reload"));
    assert!(refused.starts_with("HTTP/1.1 422 ") && refused.contains("upstreams.one.key"), "{refused}");
    silent(address, "a refused reload", refused.as_bytes());
    kill_process(pid, Signal::HUP).unwrap();
    until("the reload is refused", || router.stderr_so_far().contains("stays as it was"));
    fs::write(&file, good).unwrap();
    let reloaded = ask(&admin, &get("POST", "/reload"));
    assert!(reloaded.starts_with("HTTP/1.1 200 "), "{reloaded}");
    silent(address, "a reload", reloaded.as_bytes());

    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap();
    silent(address, "its command line", &line);
    let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().filter(|word| *word == "0").count(), 2, "{core}");

    kill_process(pid, Signal::TERM).unwrap();
    let ended = router.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stderr.contains("stays as it was"), "{ended:#?}");
    silent(address, "what it printed", ended.stdout.as_bytes());
    silent(address, "what it printed", ended.stderr.as_bytes());

    let left = everything_below(&herma.at("state"));
    for (path, (_, content)) in &left {
        silent(address, &path.display().to_string(), content);
    }
    assert!(left.len() >= 5, "audit, journal and budgets lie there");
    let records = fs::read_to_string(herma.at("state/audit/agent/model-calls.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 6);
}

#[test]
fn a_router_that_cannot_start_reports_why_without_secrets() {
    let address = echo();
    let (mut herma, file) = configured(address);
    let good = fs::read_to_string(&file).unwrap();
    let key = format!("\"{IN_ENVIRONMENT}\"");
    for (from, to) in [
        ("{ env = \"UPSTREAM_KEY\" }", key.as_str()),
        ("{ env = \"UPSTREAM_KEY\" }", &format!("{{ env = {key} }}")),
        ("{ env = \"AGENT_TOKEN\" }", &format!("\"{TOKEN}\"")),
        ("{ env = \"UPSTREAM_URL\" }", &format!("\"http://user:{IN_FILE}@{address}\"")),
        ("\"upstream.key\"", &format!("\"{IN_FILE}\"")),
        ("[models.m]", &format!("x = {key}\n[models.m]")),
        ("chain = [\"one/m\"]", "chain = []"),
    ] {
        fs::write(&file, good.replacen(from, to, 1)).unwrap();
        for args in [&["router", "--config"][..], &["router", "check"]] {
            let ended = herma.run(&[args, &[file.to_str().unwrap()]].concat());
            assert_ne!(ended.code, Some(0), "{to}");
            assert!(ended.stderr.contains("router.toml"), "{ended:#?}");
            silent(address, to, ended.stdout.as_bytes());
            silent(address, to, ended.stderr.as_bytes());
        }
    }
    fs::write(&file, good).unwrap();
    // Secrets that are not what they should be.
    for (name, value, place) in [
        ("UPSTREAM_KEY", "sk-canary\n-x", "upstreams.one.key"),
        ("UPSTREAM_KEY", "", "upstreams.one.key"),
        ("UPSTREAM_URL", "canary", "upstreams.one.url"),
        ("AGENT_TOKEN", "canary", "clients.agent.token"),
    ] {
        herma.set(name, value);
        let ended = herma.run(&["router", "--config", file.to_str().unwrap()]);
        assert_ne!(ended.code, Some(0), "{name}");
        assert!(ended.stderr.contains(place), "{ended:#?}");
        silent(address, name, ended.stderr.as_bytes());
        herma.set("UPSTREAM_KEY", IN_ENVIRONMENT);
        herma.set("UPSTREAM_URL", format!("http://{address}/"));
        herma.set("AGENT_TOKEN", TOKEN);
    }
    fs::set_permissions(herma.at("upstream.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let ended = herma.run(&["router", "--config", file.to_str().unwrap()]);
    assert_ne!(ended.code, Some(0));
    silent(address, "a key that others can read", ended.stderr.as_bytes());
}

#[test]
fn it_stops_on_a_signal_also_during_a_reload() {
    let address = echo();
    let (herma, file) = configured(address);
    for _ in 0..5 {
        let (router, pid) = started(&herma, &file);
        // After the reload signal it surely listens.
        until("it reads its configuration again", || {
            ask(&herma.at("admin.sock"), &get("POST", "/reload")).starts_with("HTTP/1.1 200 ")
        });
        thread::sleep(Duration::from_millis(50));
        kill_process(pid, Signal::HUP).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let ended = router.end();
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
}
