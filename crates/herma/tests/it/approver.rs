//! `herma approver`, from outside: who gets in, what is asked for, and what is never shown.

#![allow(clippy::disallowed_types, reason = "one test gives the binary a terminal, which the kit does not")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use crate::kit::{HERMA, Herma, environment};

const PASSPHRASE: &str = "correct horse battery";

/// A home whose first approver is alice.
fn with_alice() -> Herma {
    let herma = Herma::new();
    herma.file("alice.txt", format!("{PASSPHRASE}\n"));
    let made = herma.run(&["approver", "init", "alice", "--passphrase-file", "alice.txt"]);
    assert_eq!(made.code, Some(0), "{made:#?}");
    herma
}

/// Lets a bot in by alice and gives its token.
fn with_bot(herma: &Herma) -> String {
    let args = [
        "approver",
        "init",
        "bot",
        "--token",
        "--by",
        "alice",
        "--by-passphrase-file",
        "alice.txt",
        "--json",
    ];
    let token = herma.json(&args)["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("herma-approver-") && token.len() == 58, "{token}");
    token
}

/// Every approver with whether it is trusted.
fn listed(herma: &Herma) -> Vec<(String, bool)> {
    let json = herma.json(&["approver", "list", "--json"]);
    assert_eq!(json["schema"], "herma.approvers/v1");
    let row = |item: &Value| {
        (item["record"]["name"].as_str().unwrap().to_owned(), item["trusted"].as_bool().unwrap())
    };
    json["approvers"].as_array().unwrap().iter().map(row).collect()
}

/// The command is refused as bad input, with this said about it.
fn refused(herma: &Herma, args: &[&str], why: &str) {
    let ended = herma.run(args);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains(why), "{why}: {ended:#?}");
    assert_eq!(ended.stdout, "", "{ended:#?}");
}

#[test]
fn an_installation_without_approvers_says_how_to_start() {
    let herma = Herma::new();
    let ended = herma.run(&["approver", "list"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "no approvers yet; start with `herma approver init NAME`\n")
    );
}

#[test]
fn approvers_are_introduced_listed_and_revoked() {
    let mut herma = with_alice();
    let token = with_bot(&herma);
    herma.set("HERMA_APPROVER_TOKEN", &token);
    herma.file("carol.txt", "another horse entirely");
    let json = herma.json(&["approver", "init", "carol", "--passphrase-file", "carol.txt", "--json"]);
    assert_eq!(json["schema"], "herma.approver-shown/v1");
    assert_eq!((&json["approver"]["record"]["introduced_by"], &json["token"]), (&"bot".into(), &Value::Null));
    let all = |trusted: [bool; 3]| -> Vec<(String, bool)> {
        ["alice", "bot", "carol"].map(str::to_owned).into_iter().zip(trusted).collect()
    };
    assert_eq!(listed(&herma), all([true, true, true]));
    let json = herma.json(&["approver", "revoke", "bot", "--reason", "the server is gone", "--json"]);
    assert_eq!(json["approver"]["trusted"], false);
    assert_eq!(listed(&herma), all([true, false, true]), "whom the bot let in stays");
    let shown = herma.run(&["approver", "list"]).stdout;
    assert!(shown.contains("not trusted: bot was revoked on"), "{shown}");
    assert!(shown.contains("the server is gone"), "{shown}");
    refused(&herma, &["approver", "init", "dave", "--token"], "bot was revoked on");
    refused(
        &herma,
        &["approver", "init", "bot", "--token", "--by", "alice", "--by-passphrase-file", "alice.txt"],
        "a name is used once",
    );
    refused(&herma, &["approver", "revoke", "bot", "--reason", "again"], "revoked already");
    refused(&herma, &["approver", "revoke", "zoe", "--reason", "x"], "there is no approver called zoe");
    refused(&herma, &["approver", "revoke", "carol", "--reason", " "], "needs a reason");
    assert_eq!(listed(&herma).len(), 3);
}

#[test]
fn the_second_approver_needs_the_first() {
    let herma = with_alice();
    herma.file("wrong.txt", "wrong horse battery");
    let by = |file| ["approver", "init", "bot", "--token", "--by", "alice", "--by-passphrase-file", file];
    refused(&herma, &["approver", "init", "bot", "--token"], "has to be let in by one of them");
    refused(&herma, &by("wrong.txt"), "the passphrase does not open the key");
    refused(
        &herma,
        &["approver", "init", "bot", "--token", "--by", "zoe", "--by-passphrase-file", "alice.txt"],
        "no approver called zoe",
    );
    assert_eq!(listed(&herma), [("alice".to_owned(), true)]);
    assert_eq!(herma.run(&by("alice.txt")).code, Some(0));
}

#[test]
fn a_passphrase_comes_from_a_file_or_a_person_and_from_nowhere_else() {
    let herma = Herma::new();
    herma.file("short.txt", "short");
    herma.file("empty.txt", "\nthe second line is not read");
    let init = |more: &[&'static str]| [&["approver", "init", "alice"], more].concat();
    refused(&herma, &init(&[]), "there is no terminal to type the passphrase at");
    refused(&herma, &init(&["--passphrase-file", "short.txt"]), "at least 12 characters, this one has 5");
    refused(&herma, &init(&["--passphrase-file", "empty.txt"]), "the passphrase is empty");
    refused(&herma, &init(&["--passphrase-file", "none.txt"]), "none.txt cannot be read");
    refused(&herma, &init(&["--passphrase", "correct-horse-battery"]), "unexpected argument");
    refused(&herma, &init(&["--token", "--passphrase-file", "short.txt"]), "cannot be used with");
    refused(&herma, &["approver", "init", "Alice", "--token"], "lower-case letters");
    refused(&herma, &["approver", "init", "../alice", "--token"], "lower-case letters");
    assert_eq!(listed(&herma), []);
    let json = herma.run(&["approver", "init", "alice", "--json"]);
    assert_eq!((json.code, &json.json()["schema"]), (Some(2), &"herma.error/v1".into()));
}

/// Runs `herma approver init alice` at a terminal of its own, types this, and gives the child, what it said, and what the
/// terminal showed.
fn typed(herma: &Herma, lines: &[&str]) -> (Child, String, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let mut terminal = File::from(terminal);
    let slave = File::options().read(true).write(true).open(name).unwrap();
    let mut child = Command::new(HERMA)
        .args(["approver", "init", "alice"])
        .env_clear()
        .env("HERMA_HOME", herma.home())
        .env("HOME", herma.at("user"))
        .env("PATH", environment("PATH"))
        .stdin(slave.try_clone().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    for line in lines {
        // Each prompt is a line. Text typed before the echo is off would be shown, and is discarded.
        let mut byte = [0];
        while stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            said.push(char::from(byte[0]));
        }
        crate::kit::until("the terminal is quiet", || {
            let modes = rustix::termios::tcgetattr(&slave).unwrap().local_modes;
            !modes.contains(rustix::termios::LocalModes::ECHO)
        });
        writeln!(terminal, "{line}").unwrap();
    }
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let echoes = rustix::termios::tcgetattr(&slave).unwrap().local_modes;
    assert!(echoes.contains(rustix::termios::LocalModes::ECHO), "the terminal is left as it was");
    // A mark of the test's own ends what the terminal showed.
    (&slave).write_all(b"\x04").unwrap();
    let mut shown = Vec::new();
    let mut byte = [0];
    while terminal.read(&mut byte).unwrap() == 1 && byte != [4] {
        shown.push(byte[0]);
    }
    (child, said + &rest, String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_typed_passphrase_is_asked_for_twice_and_never_shown() {
    let herma = Herma::new();
    let (mut child, said, shown) = typed(&herma, &[PASSPHRASE, "another horse"]);
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("the two passphrases differ"), "{said}");
    assert!(!shown.contains("horse") && !said.contains("horse"), "{shown}{said}");
    let (mut child, said, shown) = typed(&herma, &[PASSPHRASE, PASSPHRASE]);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert!(!shown.contains("horse") && !said.contains("horse"), "{shown}{said}");
    herma.file("alice.txt", PASSPHRASE);
    with_bot(&herma);
}

#[test]
fn a_token_is_printed_once_and_kept_nowhere() {
    let herma = with_alice();
    let token = with_bot(&herma);
    let secret = token.strip_prefix("herma-approver-").unwrap();
    for entry in fs::read_dir(herma.home().join("keys/approvers")).unwrap() {
        let entry = entry.unwrap();
        assert!(!fs::read_to_string(entry.path()).unwrap().contains(secret), "{entry:?}");
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
    for args in [&["approver", "list"][..], &["approver", "list", "--json"]] {
        assert!(!herma.run(args).stdout.contains(secret));
    }
}

#[test]
fn a_token_that_is_none_is_refused_and_not_shown() {
    let mut herma = with_alice();
    let token = with_bot(&herma);
    let cut = &token[..token.len() - 1];
    herma.set("HERMA_APPROVER_TOKEN", cut);
    let ended = herma.run(&["approver", "init", "carol", "--token"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("this is not an approver's token"), "{ended:#?}");
    assert!(!ended.stderr.contains(&cut[20..]), "{ended:#?}");
    // Another installation's approver is a stranger here.
    let stranger = with_bot(&with_alice());
    herma.set("HERMA_APPROVER_TOKEN", stranger);
    refused(&herma, &["approver", "init", "carol", "--token"], "the token is that of no approver");
}

#[test]
fn no_process_of_a_run_sees_a_token() {
    let mut herma = with_alice();
    let token = with_bot(&herma);
    herma.set("HERMA_APPROVER_TOKEN", &token);
    for destination in ["host", "sandbox"] {
        let terms = [("verify", "[\"env\", \"sh tests/slugify_test.sh\"]"), ("destination", destination)];
        let run = herma.play(&crate::kit::fix_and(&[]), &terms);
        let log = run.bundle.text("test.log");
        assert!(log.contains("PATH="), "{log}");
        assert!(!log.contains("HERMA_APPROVER_TOKEN") && !log.contains("herma_approver_token"), "{log}");
    }
}

#[test]
fn a_record_that_was_written_by_hand_is_not_trusted() {
    let (herma, other) = (with_alice(), Herma::new());
    assert_eq!(other.run(&["approver", "init", "mallory", "--token"]).code, Some(0));
    let dir = |herma: &Herma| herma.home().join("keys/approvers");
    fs::copy(dir(&other).join("mallory.json"), dir(&herma).join("mallory.json")).unwrap();
    assert_eq!(listed(&herma), [("alice".to_owned(), true), ("mallory".to_owned(), false)]);
    let shown = herma.run(&["approver", "list"]).stdout;
    assert!(shown.contains("mallory vouches for itself and is not the first approver"), "{shown}");
    fs::write(dir(&herma).join("mallory.json"), "{}").unwrap();
    let ended = herma.run(&["approver", "list"]);
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    assert!(ended.stderr.contains("mallory.json is not what it should be"), "{ended:#?}");
}

/// Deleting the record of the first approver does not make another one the first.
#[test]
fn nobody_becomes_the_first_approver_again() {
    let herma = with_alice();
    let record = herma.home().join("keys/approvers/alice.json");
    let sound = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let first = herma.home().join("keys/approvers/first");
    let key = fs::read_to_string(&first).unwrap();
    for name in ["mallory", "alice"] {
        let init = ["approver", "init", name, "--token"];
        refused(&herma, &init, &format!("names {} as the key of the first approver", key.trim_end()));
        refused(&herma, &init, "restore that approver's <name>.json");
    }
    assert_eq!((listed(&herma), fs::read_to_string(first).unwrap()), (Vec::new(), key));
    fs::write(&record, sound).unwrap();
    with_bot(&herma);
    assert_eq!(listed(&herma), [("alice".to_owned(), true), ("bot".to_owned(), true)]);
}

#[test]
fn the_last_trusted_approver_is_revoked_only_on_purpose() {
    let herma = with_alice();
    with_bot(&herma);
    let revoke = |name| ["approver", "revoke", name, "--reason", "mistyped"];
    assert_eq!(herma.run(&revoke("bot")).code, Some(0));
    refused(&herma, &revoke("alice"), "alice is the last approver who is trusted: after it nobody can grant");
    refused(&herma, &revoke("zoe"), "there is no approver called zoe");
    assert_eq!(listed(&herma), [("alice".to_owned(), true), ("bot".to_owned(), false)]);
    let ended = herma.run(&[&revoke("alice")[..], &["--last"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(listed(&herma).iter().all(|(_, trusted)| !trusted));
    refused(&herma, &["approver", "init", "carol", "--token"], "has to be let in by one of them");
}

/// Anybody who can write there chooses a file's name; it reaches no terminal as it is.
#[test]
fn the_name_of_a_file_hides_nothing() {
    let herma = with_alice();
    let dir = herma.home().join("keys/approvers");
    for name in ["e\u{1b}[31m.json", "e\u{202e}nosj.json", "e\nerror: none.json"] {
        fs::write(dir.join(name), "x").unwrap();
        let ended = herma.run(&["approver", "list"]);
        assert_eq!(ended.code, Some(4), "{ended:#?}");
        let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!ended.stderr.contains(raw), "{ended:#?}");
        assert_eq!(ended.stderr.lines().count(), 2, "{ended:#?}");
        fs::remove_file(dir.join(name)).unwrap();
    }
}
