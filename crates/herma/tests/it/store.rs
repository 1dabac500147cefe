//! The store: on PostgreSQL, without it for a while, checked, made anew and moved.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use herma_core::Status;
use serde_json::Value;

use crate::kit::{CONTRACT, HOLD, Herma, Started, contract_text, fix_and, until};
use crate::postgres_server::{PASSWORD, Server, shared};

/// The name of the database in a URL of the test kit.
fn database(url: &str) -> &str {
    let path = url.split('?').next().unwrap();
    path.rsplit('/').next().unwrap()
}

/// How many rows the query counts.
fn count(server: &Server, url: &str, of: &str) -> u32 {
    server.sql(database(url), &format!("SELECT count(*) FROM {of}")).parse().unwrap()
}

fn kinds(check: &Value) -> Vec<&str> {
    check["disagreements"].as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect()
}

#[test]
fn runs_and_approvals_are_kept_on_postgresql() {
    let mut herma = Herma::proven(4);
    let url = shared().database();
    let sqlite = fs::read(herma.home().join("store.db")).unwrap();
    herma.set("HERMA_STORE", &url);
    // The proofs came from runs that only the bundles have for this store.
    let rebuilt = herma.json(&["store", "rebuild", "--json"]);
    let bundles = herma.runs().len();
    assert_eq!(rebuilt["runs"], bundles, "{rebuilt:#}");
    assert_eq!(rebuilt["store"]["engine"], "postgresql");

    herma.contract(&[("stage", "4")]);
    herma.script(&fix_and(&[]));
    let approval = herma.approve();
    assert_eq!(herma.approval(&approval), ("granted".to_owned(), None));
    let before = herma.runs();
    let args = ["run", CONTRACT, "--script", "script.yaml"];
    let both: [Started; 2] = [herma.start(&args), herma.start(&args)];
    let mut codes = both.map(|started| started.end().code);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(3)], "one of two runs uses the approval");
    let new: Vec<_> = herma.runs().into_iter().filter(|run| !before.contains(run)).collect();
    let passed = new.iter().find(|run| herma.bundle(**run).report().status == Status::Pass).unwrap();
    assert_eq!(herma.approval(&approval), ("consumed".to_owned(), Some(*passed)));

    let listed = herma.json(&["runs", "--all", "--json"]);
    let ids: Vec<_> =
        listed["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert!(new.iter().all(|run| ids.contains(&run.to_string().as_str())), "{listed:#}");
    let shown = herma.json(&["show", &passed.to_string(), "--json"]);
    assert_eq!(shown["status"], "pass");
    let check = herma.json(&["store", "check", "--json"]);
    assert_eq!((&check["ok"], &check["bundles"]), (&true.into(), &(bundles + 2).into()), "{check:#}");
    assert_eq!(count(shared(), &url, "approvals WHERE state = 'consumed'"), 1);
    assert_eq!(fs::read(herma.home().join("store.db")).unwrap(), sqlite, "the file of the home is not used");
}

#[test]
fn a_store_is_moved_to_postgresql_and_back() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    herma.script(&fix_and(&[]));
    let (used, unused) = (herma.approve(), herma.approve());
    let run = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]).report.run_id;
    let states = || [&used, &unused].map(|id| herma.approval(id));
    let before = (herma.json(&["runs", "--all", "--json"]), states());
    assert!(before.1.contains(&("consumed".to_owned(), Some(run))));

    let (server, secret) = (shared(), herma.file("password", format!("{PASSWORD}\n")));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let url = server.database_by_tcp();
    let migrate = ["store", "migrate", "--to", &url, "--password-file", "password"];
    let moved = herma.json(&[&migrate[..], &["--use", "--json"]].concat());
    assert_eq!(moved["is_in_use"], true, "{moved:#}");
    assert_eq!(moved["counts"]["runs"], count(server, &url, "runs"));
    let settings = fs::read_to_string(herma.home().join("settings.yaml")).unwrap();
    assert!(settings.contains(&url) && !settings.contains(PASSWORD), "{settings}");

    fs::rename(herma.home().join("store.db"), herma.at("old.db")).unwrap();
    assert_eq!((herma.json(&["runs", "--all", "--json"]), states()), before);
    assert!(!herma.home().join("store.db").exists());
    assert_eq!(herma.json(&["store", "check", "--json"])["ok"], true);

    let again = herma.run(&migrate);
    assert_eq!(again.code, Some(2), "{again:#?}");
    let back = format!("sqlite:{}", herma.at("back.db").display());
    let refused = herma.run(&["store", "migrate", "--to", &back, "--use"]);
    assert!(refused.stderr.contains("has the key `store` already"), "{refused:#?}");
    herma.json(&["store", "migrate", "--to", &back, "--json"]);
    fs::write(herma.home().join("settings.yaml"), format!("store:\n  url: '{back}'\n")).unwrap();
    assert_eq!((herma.json(&["runs", "--all", "--json"]), states()), before);
    assert_eq!(herma.json(&["store", "check", "--json"])["store"]["engine"], "sqlite");
}

#[test]
fn a_server_that_goes_away_during_a_run_loses_nothing() {
    let mut herma = Herma::new();
    let server = Server::start(&[]);
    let url = server.database();
    herma.set("HERMA_STORE", &url);
    herma.set("HERMA_LOG", "store=warn");
    herma.file(CONTRACT, contract_text(&[("destination", "sandbox")]));
    herma.script(&fix_and(&["- say: before", HOLD, "- say: after"]));
    let under_way = herma.under_way();
    let run = under_way.run;
    server.stop();
    std::thread::sleep(Duration::from_secs(1));
    let mut started = under_way.let_go();
    // The end of the run waits for the store.
    until("the outage is reported", || started.stderr_so_far().contains("the store is out of reach"));
    until("the bundle is signed", || herma.bundle(run).dir.join("attestation.json").exists());
    assert!(started.is_alive());
    server.resume();
    let ended = started.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let bundle = herma.bundle(run);
    bundle.assert_whole();
    herma.assert_verifies(&bundle);
    assert_eq!(herma.json(&["store", "check", "--json"])["ok"], true);
    let events = bundle.text("events.jsonl").lines().count();
    assert_eq!(count(&server, &url, "events"), u32::try_from(events).unwrap());
}

#[test]
fn a_run_that_dies_while_the_server_is_away_is_recorded_later() {
    let mut herma = Herma::new();
    let server = Server::start(&[]);
    let url = server.database();
    herma.set("HERMA_STORE", &url);
    herma.file(CONTRACT, contract_text(&[("destination", "sandbox")]));
    herma.script(&fix_and(&["- say: before", HOLD, "- say: after"]));
    let under_way = herma.under_way();
    let run = under_way.run;
    server.stop();
    let started = under_way.let_go();
    until("the bundle is signed", || herma.bundle(run).dir.join("attestation.json").exists());
    started.kill();

    let refused = herma.run(&["runs"]);
    assert_eq!(refused.code, Some(4), "{refused:#?}");
    for part in
        [&*url, "start PostgreSQL, or correct the URL of the store", "next: make the store available again"]
    {
        assert!(refused.stderr.contains(part), "{part}: {refused:#?}");
    }
    server.resume();
    let listed = herma.json(&["runs", "--all", "--json"]);
    assert_eq!(
        (listed["runs"][0]["run_id"].as_str(), listed["runs"][0]["status"].as_str()),
        (Some(&*run.to_string()), Some("pass"))
    );
    herma.assert_verifies(&herma.bundle(run));
    assert_eq!(herma.active(), [""; 0]);
    assert_eq!(herma.json(&["store", "check", "--json"])["ok"], true);
}

#[test]
fn a_check_names_every_difference_and_a_rebuild_ends_them() {
    let mut herma = Herma::new();
    let (server, url) = (shared(), shared().database());
    herma.set("HERMA_STORE", &url);
    let runs: Vec<_> = (0..4).map(|_| herma.demo(&[]).report.run_id).collect();
    let sql = |sql: &str| server.sql(database(&url), sql);
    assert_eq!(herma.json(&["store", "check", "--json"])["ok"], true);
    for (change, kind) in [
        (format!("UPDATE runs SET status = 'fail' WHERE run_id = '{}'", runs[0]), "other_status"),
        (
            format!(
                "UPDATE artifacts SET sha256 = (SELECT contract_digest FROM runs LIMIT 1) WHERE run_id = '{}'",
                runs[1]
            ),
            "other_artifacts",
        ),
        (
            format!(
                "UPDATE runs SET contract_digest = (SELECT sha256 FROM artifacts LIMIT 1) WHERE run_id = '{}'",
                runs[2]
            ),
            "other_contract",
        ),
        (
            format!(
                "DELETE FROM artifacts WHERE run_id = '{0}'; DELETE FROM runs WHERE run_id = '{0}'",
                runs[3]
            ),
            "missing_row",
        ),
    ] {
        sql(&change);
        let checked = herma.run(&["store", "check", "--json"]);
        assert_eq!(checked.code, Some(1), "{checked:#?}");
        assert!(kinds(&checked.json()).contains(&kind), "{kind}: {checked:#?}");
    }
    let rebuilt = herma.json(&["store", "rebuild", "--json"]);
    assert_eq!(rebuilt["runs"], 4, "{rebuilt:#}");
    assert_eq!(herma.json(&["store", "check", "--json"])["ok"], true);

    // A bundle that was changed is not recorded, and one that is gone is missed.
    let report = herma.bundle(runs[0]).dir.join("report.md");
    fs::write(&report, fs::read_to_string(&report).unwrap() + "!").unwrap();
    let rebuilt = herma.run(&["store", "rebuild", "--json"]);
    assert_eq!(rebuilt.code, Some(1), "{rebuilt:#?}");
    assert_eq!(rebuilt.json()["refused"][0]["run_id"], runs[0].to_string());
    fs::remove_dir_all(herma.bundle(runs[1]).dir).unwrap();
    let checked = herma.run(&["store", "check", "--json"]).json();
    assert_eq!(kinds(&checked), ["missing_row", "missing_bundle"], "{checked:#}");
}

#[test]
fn a_rebuild_voids_approvals_that_were_not_used_and_waits_for_runs() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    herma.script(&fix_and(&[HOLD]));
    let (first, second) = (herma.approve(), herma.approve());
    let under_way = herma.under_way();
    for command in [&["store", "rebuild"][..], &["store", "migrate", "--to", "sqlite:other.db"]] {
        let refused = herma.run(command);
        assert_eq!(refused.code, Some(3), "{refused:#?}");
        assert!(refused.stderr.contains("is in progress"), "{refused:#?}");
    }
    let run = under_way.go_on().report.run_id;
    let used = |id: &String| herma.approval(id) == ("consumed".to_owned(), Some(run));
    let (used, unused) = if used(&first) { (first, second) } else { (second, first) };
    let rebuilt = herma.json(&["store", "rebuild", "--json"]);
    assert!(rebuilt["voided_approvals"].as_u64().unwrap() >= 1, "{rebuilt:#}");
    assert_eq!(herma.approval(&used), ("consumed".to_owned(), Some(run)));
    assert_eq!(herma.approval(&unused), ("expired".to_owned(), None));
    herma.script(&fix_and(&[]));
    assert_eq!(herma.run(&["run", CONTRACT, "--script", "script.yaml"]).code, Some(3), "no approval is left");
}

#[test]
fn a_file_that_is_no_store_is_set_aside_and_made_anew() {
    let herma = Herma::new();
    let run = herma.demo(&[]).report.run_id;
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(herma.home().join(format!("store.db{suffix}")));
    }
    fs::write(herma.home().join("store.db"), "this is no database, and it is long. ".repeat(40)).unwrap();
    let refused = herma.run(&["runs"]);
    assert_eq!(refused.code, Some(4), "{refused:#?}");
    assert!(refused.stderr.contains("`herma store rebuild` makes it anew"), "{refused:#?}");
    let rebuilt = herma.json(&["store", "rebuild", "--json"]);
    let aside = fs::read_to_string(rebuilt["set_aside"].as_str().unwrap()).unwrap();
    assert!(aside.starts_with("this is no database"));
    assert_eq!(herma.json(&["runs", "--all", "--json"])["runs"][0]["run_id"], run.to_string());
}

#[test]
fn a_store_that_cannot_be_located_or_opened_is_refused_without_its_password() {
    const MARK: &str = "marked-wrong-password";
    let url = shared().database_by_tcp();
    let with_password = url.replacen("herma@", &format!("herma:{MARK}@"), 1);
    let refused = |variables: &[(&str, &str)], settings: &str, code: i32, why: &str| {
        let mut herma = Herma::new();
        for (name, value) in variables {
            herma.set(name, *value);
        }
        if !settings.is_empty() {
            herma.settings(settings);
        }
        let readable = herma.file("user/readable", MARK);
        fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
        let ended = herma.run(&["-vv", "runs"]);
        assert_eq!(ended.code, Some(code), "{ended:#?}");
        assert!(ended.stderr.contains(why), "{why}: {ended:#?}");
        assert!(!format!("{ended:?}").contains(MARK), "{ended:#?}");
    };
    let in_settings = |password: &str| format!("store:\n  url: '{url}'\n  password: {password}\n");
    refused(&[("HERMA_STORE", &with_password)], "", 2, "contains a password");
    refused(&[("HERMA_STORE", "mysql://herma@db/herma")], "", 2, "no engine for the scheme `mysql`");
    refused(&[("HERMA_STORE", "sqlite:x.db"), ("HERMA_STORE_PASSWORD", MARK)], "", 2, "has no password");
    refused(
        &[("HERMA_STORE", &url), ("HERMA_STORE_PASSWORD", MARK)],
        "",
        4,
        "check the user, and the source",
    );
    refused(&[("HERMA_STORE", &url), ("HERMA_STORE_PASSWORD_FILE", "/missing")], "", 2, "is not there");
    refused(
        &[("HERMA_STORE", &url), ("HERMA_STORE_PASSWORD_FILE", "user/readable")],
        "",
        2,
        "run `chmod 600` on it",
    );
    refused(&[("SOME_KEY", MARK)], &in_settings("{ env: SOME_KEY }"), 4, "check the user, and the source");
    refused(&[], &in_settings("{ env: SOME_KEY }"), 2, "the variable `SOME_KEY` is not set");
    refused(&[], &in_settings("{ command: [/bin/false] }"), 2, "`/bin/false` ended with");
    refused(&[], &in_settings("{ command: [echo, x] }"), 2, "not an absolute path");
    refused(&[], &in_settings("{ env: A, file: /b }"), 2, "exactly one of");
    // The password of the settings is not sent to a server that the environment names.
    let command = in_settings(&format!("{{ command: [/bin/echo, {PASSWORD}] }}"));
    refused(&[("HERMA_STORE", &url)], &command, 4, "check the user, and the source");

    // An option of the session could lead to the tables of another schema.
    let mut herma = Herma::new();
    herma.set("HERMA_STORE", &url);
    herma.set("HERMA_STORE_PASSWORD", PASSWORD);
    herma.set("PGOPTIONS", "-c search_path=other");
    let ended = herma.run(&["runs"]);
    assert!(ended.code != Some(0) && ended.stderr.contains("unset PGOPTIONS"), "{ended:#?}");

    let herma = Herma::new();
    herma.settings(&command);
    assert_eq!(herma.json(&["store", "check", "--json"])["store"]["engine"], "postgresql");
    let mut herma = Herma::new();
    herma.settings("store:\n  url: postgres://nobody@nowhere.invalid/none\n");
    herma.set("HERMA_STORE", &url);
    herma.set("HERMA_STORE_PASSWORD", PASSWORD);
    herma.json(&["store", "check", "--json"]);
}
