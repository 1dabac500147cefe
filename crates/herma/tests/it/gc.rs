//! `herma gc` removes what is old and never what a record names.

use std::collections::BTreeMap;
use std::fs;

use herma_core::{Digest, RunId};
use serde_json::Value;

use crate::kit::{
    Herma, ON_REPOSITORY, ON_TARGET, Repository, as_approver, contract_text, everything_below, fix_and, names,
};

/// Every bundle that is old enough and stays, with the reasons.
fn kept(plan: &Value) -> BTreeMap<RunId, Vec<String>> {
    let rows = plan["kept_bundles"].as_array().unwrap().iter();
    let reasons = |row: &Value| {
        let reasons = row["because"].as_array().unwrap().iter();
        reasons.map(|reason| reason.as_str().unwrap().to_owned()).collect()
    };
    rows.map(|row| (row["run_id"].as_str().unwrap().parse().unwrap(), reasons(row))).collect()
}

fn removed(plan: &Value) -> Vec<RunId> {
    let rows = plan["bundles"].as_array().unwrap().iter();
    rows.map(|row| row["run_id"].as_str().unwrap().parse().unwrap()).collect()
}

/// `herma gc` for bundles of any age.
fn gc(herma: &Herma, how: &str) -> Value {
    herma.json(&["gc", "--older-than", "100w", "--bundles-older-than", "0s", how, "--json"])
}

#[test]
fn a_bundle_that_a_record_names_stays_and_one_that_nothing_names_goes() {
    let (herma, _owned) = Herma::with_target(&[]);
    herma.file("user/.gitconfig", "[user]\n\tname = a\n\temail = a@example.org\n");
    let proof: RunId = {
        let text = fs::read_to_string(herma.home().join("proofs/fake/stage-5.json")).unwrap();
        let proof: Value = serde_json::from_str(&text).unwrap();
        proof["record"]["bundles"][0]["run_id"].as_str().unwrap().parse().unwrap()
    };
    let accepted = herma.approve_and_play(&fix_and(&[])).report.run_id;
    assert_eq!(herma.run(&as_approver("alice", &["accept", &accepted.to_string()])).code, Some(0));
    let pending = herma.approve_and_play(&fix_and(&[])).report.run_id;
    let compared = herma.json(&[
        "compare",
        "--contract",
        "fixture:string-slugify",
        "--engines",
        "fake",
        "--runs",
        "1",
        "--json",
    ]);
    let compared: RunId = compared["lanes"][0]["runs"][0]["run_id"].as_str().unwrap().parse().unwrap();
    let applied = {
        let repository = Repository::of_fixture(&herma, "string-slugify");
        let finished = herma.play(&fix_and(&[]), &ON_REPOSITORY);
        finished.assert_pass();
        let id = finished.report.run_id;
        let code = &Digest::of(&finished.bundle.read("attestation.json")).hex()[..6];
        let repo = repository.dir.to_str().unwrap();
        let ended = herma.run_typing(code, &["apply", &id.to_string(), "--repo", repo]);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        id
    };
    let unnamed = herma.demo(&[]).report.run_id;
    let child = contract_text(&[
        ("id", "the-child"),
        ("target", "{ repo: . }"),
        ("limits", "{ total: 30s, idle: 30s }"),
    ]);
    let script = format!(
        "steps:\n  - write: {{ path: /tmp/child.md, text: {child:?} }}\n  \
         - write: {{ path: /tmp/child.yaml, text: {:?} }}\n  \
         - shell: /herma/herma run /tmp/child.md --script /tmp/child.yaml\n",
        fix_and(&[])
    );
    let before = herma.runs();
    let (contract, script) = (herma.contract(&[]), herma.script(&script));
    let run = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    assert_eq!(herma.run(&run).code, Some(0));
    let family: Vec<RunId> = herma.runs().into_iter().filter(|run| !before.contains(run)).collect();
    let [parent, child] = family[..] else { panic!("{family:?}") };

    let plan = gc(&herma, "--dry-run");
    assert_eq!(plan["unreadable"], serde_json::json!([]));
    let stays = kept(&plan);
    for (run, reason) in [
        (proof, "a proof"),
        (accepted, "an outcome"),
        (accepted, "an approval"),
        (accepted, "the trust chain"),
        (pending, "a landing"),
        (compared, "a comparison"),
        (applied, "an applied patch"),
        (child, "a head of the trust chain"),
        (parent, "the bundle of another run"),
        (child, "the bundle of another run"),
    ] {
        let because = stays.get(&run).unwrap_or_else(|| panic!("{run} would be removed: {reason}"));
        assert!(because.iter().any(|because| because == reason), "{reason}: {because:?}");
    }
    let goes = removed(&plan);
    assert!(goes.contains(&unnamed), "{plan:#}");
    assert!(goes.iter().all(|run| !stays.contains_key(run)));
    // A plan changes nothing.
    assert!(goes.iter().all(|run| herma.bundle(*run).dir.is_dir()));

    let done = gc(&herma, "--yes");
    assert_eq!(removed(&done), goes);
    for run in herma.runs() {
        assert_eq!(herma.bundle(run).dir.exists(), !goes.contains(&run), "{run}");
        if !goes.contains(&run) {
            herma.assert_verifies(&herma.bundle(run));
        }
    }
    // Trust, proofs and later runs are as before.
    assert_eq!(herma.run(&["trust", "check"]).code, Some(0));
    let doctor = herma.json(&["doctor", "--json"]);
    let chain =
        doctor["items"].as_array().unwrap().iter().find(|item| item["name"] == "trust chain").unwrap();
    assert_eq!(chain["ok"], true, "{chain:#}");
    herma.contract(&ON_TARGET);
    let again = herma.approve_and_play(&fix_and(&[]));
    again.assert_pass();
    assert_eq!(removed(&gc(&herma, "--dry-run")), []);
}

#[test]
fn a_removed_bundle_is_shown_as_removed_and_not_as_broken() {
    let herma = Herma::new();
    let gone = herma.demo(&[]);
    let id = gone.report.run_id.to_string();
    let attestation = Digest::of(&gone.bundle.read("attestation.json"));
    let done = gc(&herma, "--yes");
    assert_eq!(removed(&done), [gone.report.run_id]);
    assert_eq!(done["bundles"][0]["attestation"], attestation.to_string());
    assert_eq!(names(&herma.home().join("runs").join(&id)), ["removed.json"]);
    for command in ["show", "diff", "logs", "verify", "resume", "accept"] {
        let ended = herma.run(&[command, &id]);
        assert_eq!(ended.code, Some(2), "{command}: {ended:#?}");
        let words = format!("the bundle of run {id} was removed by gc on 2");
        assert!(ended.stderr.contains(&words), "{command}: {ended:#?}");
    }
    let listed = herma.json(&["runs", "--all", "--json"]);
    assert!(listed["runs"][0]["bundle_removed_at"].as_str().is_some(), "{listed:#}");
    assert!(herma.run(&["runs", "--all"]).stdout.contains("bundle removed by gc on 2"));
    let health = herma.run(&["health", "--json", "--skip-matrix"]).json();
    assert_eq!(health["failing"], serde_json::json!([]), "{health:#}");
    assert_eq!(herma.run(&["store", "check"]).code, Some(0));
    // Without the record of its removal it is missing.
    let record = herma.home().join("runs").join(&id).join("removed.json");
    let kept = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let health = herma.run(&["health", "--json", "--skip-matrix"]).json();
    assert_eq!(health["failing"], serde_json::json!(["bundles"]), "{health:#}");
    assert_eq!(herma.run(&["store", "check"]).code, Some(1));
    fs::write(&record, kept).unwrap();
    // Another bundle in its place is no bundle of that run.
    assert_eq!(herma.run(&["doctor"]).code, Some(0));
    herma.demo(&[]);
}

#[test]
fn a_record_that_cannot_be_read_keeps_every_bundle() {
    let herma = Herma::new();
    let (one, other) = (herma.demo(&[]).report.run_id, herma.demo(&[]).report.run_id);
    let before = everything_below(&herma.home().join("runs"));
    let spoil: [&dyn Fn() -> std::path::PathBuf; 2] = [
        &|| {
            let file = herma.home().join("proofs/fake/stage-1.json");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            file
        },
        &|| {
            let file = herma.home().join("comparisons/x.json");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            file
        },
    ];
    for spoil in spoil {
        let file = spoil();
        let done = gc(&herma, "--yes");
        assert_eq!(removed(&done), [], "{done:#}");
        assert!(done["unreadable"][0].as_str().unwrap().contains(file.to_str().unwrap()), "{done:#}");
        assert_eq!(everything_below(&herma.home().join("runs")), before);
        fs::remove_file(file).unwrap();
    }
    // A bundle that is damaged may have named any other.
    let attestation = herma.bundle(one).dir.join("attestation.json");
    let sound = fs::read(&attestation).unwrap();
    fs::write(&attestation, "{}").unwrap();
    let done = gc(&herma, "--yes");
    assert_eq!(removed(&done), [], "{done:#}");
    fs::write(&attestation, sound).unwrap();
    let mut both = removed(&gc(&herma, "--yes"));
    both.sort();
    assert_eq!(both, [one, other]);
}

#[test]
fn workspaces_and_sessions_go_with_age_and_bundles_only_when_that_is_said() {
    let herma = Herma::new();
    let run = herma.json(&["run", "fixture:string-slugify", "--keep-workspace", "--script", "fix", "--json"]);
    let run: RunId = run["run_id"].as_str().unwrap().parse().unwrap();
    let dir = herma.home().join("runs").join(run.to_string());
    assert_eq!(names(&dir), ["bundle", "workspace"]);
    let young = herma.json(&["gc", "--yes", "--json"]);
    assert_eq!(young["workspaces"], serde_json::json!([]));
    // The bundle of a run whose workspace is kept stays.
    let plan = gc(&herma, "--dry-run");
    assert_eq!(kept(&plan)[&run], ["a kept workspace or session"]);

    let refused = herma.run(&["gc", "--older-than", "0s"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("there is no terminal to ask at"), "{refused:#?}");
    let declined = herma.run_typing("no", &["gc", "--older-than", "0s"]);
    assert!(declined.stdout.contains("would be removed"), "{declined:#?}");
    assert_eq!(names(&dir), ["bundle", "workspace"]);
    let agreed = herma.run_typing("yes", &["gc", "--older-than", "0s"]);
    assert_eq!(agreed.code, Some(0), "{agreed:#?}");
    assert!(agreed.stdout.contains(" removed\n"), "{agreed:#?}");
    assert_eq!(names(&dir), ["bundle", "discarded.json"]);
    herma.assert_verifies(&herma.bundle(run));
    let nothing = herma.run(&["gc", "--older-than", "0s", "--dry-run"]);
    assert_eq!(nothing.stdout, "nothing to remove\n");
    let bad = herma.run(&["gc", "--older-than", "soon"]);
    assert!(bad.stderr.contains("is not an age"), "{bad:#?}");

    let mut inside = herma.twin();
    inside.set("HERMA_RUN", run.to_string());
    let refused = inside.run(&["gc", "--yes"]);
    assert_eq!(refused.code, Some(3), "{refused:#?}");
}
