//! `herma destinations`, `herma destination` and `herma probe`, where they need no Docker.

use crate::kit::{Herma, ON_REPOSITORY, Repository};

const IMAGE: &str = "team/agent@sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn every_destination_is_listed_with_what_is_missing() {
    let mut herma = Herma::new();
    herma.set("DOCKER_HOST", "unix:///no/docker.sock");
    let listed = herma.json(&["destinations", "--json"]);
    let row = |at: usize| &listed["destinations"][at];
    let names: Vec<&str> = (0..4).map(|at| row(at)["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["host", "sandbox", "docker", "kubernetes"]);
    assert_eq!((&row(1)["ready"], &row(1)["chosen"]), (&true.into(), &true.into()), "{listed:#}");
    assert!(row(1)["walls"].as_array().unwrap().len() > 5 && row(0)["walls"].as_array().unwrap().is_empty());
    for at in [2, 3] {
        assert_eq!(row(at)["ready"], false, "{listed:#}");
        assert!(row(at)["next_step"].is_string(), "{listed:#}");
    }
    let said = herma.run(&["destinations"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(
        said.stdout.contains("sandbox    ready") && said.stdout.contains("docker     not ready"),
        "{said:#?}"
    );
}

#[test]
fn the_choice_for_a_repository_is_in_hermas_home_and_is_shown() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let before = repository.picture();
    let show = ["destination", "show", "--json", "--repo", "repo"];
    let shown = herma.json(&show);
    assert_eq!((&shown["destination"], &shown["chosen"]), (&"sandbox".into(), &false.into()));
    let set =
        ["destination", "set", "docker", "--image", IMAGE, "--runtime", "runsc", "--repo", "repo/tests"];
    assert_eq!(herma.run(&set).code, Some(0));
    let shown = herma.json(&show);
    assert_eq!((&shown["destination"], &shown["image"]), (&"docker".into(), &IMAGE.into()));
    assert_eq!((&shown["chosen"], &shown["runtime"]), (&true.into(), &"runsc".into()));
    assert_eq!(herma.run(&["destination", "set", "sandbox", "--repo", "repo"]).code, Some(0));
    assert_eq!(
        herma.json(&show)["image"],
        serde_json::Value::Null,
        "another choice leaves nothing of the first"
    );
    assert_eq!(repository.picture(), before);
}

#[test]
fn a_choice_that_means_nothing_is_refused() {
    let herma = Herma::new();
    Repository::of_fixture(&herma, "string-slugify");
    for (words, said) in [
        (&["docker"][..], "no image is named"),
        (&["docker", "--image", "team/agent:v1"], "is not pinned"),
        (&["sandbox", "--image", IMAGE], "has neither image nor runtime"),
        (&["kubernetes"], "invalid value"),
        (&["sandbox", "--repo", "contracts"], "not the top directory of a git repository"),
    ] {
        let repo: &[&str] = if words.contains(&"--repo") { &[] } else { &["--repo", "repo"] };
        let ended = herma.run(&[&["destination", "set"], words, repo].concat());
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:#?}");
        assert!(ended.stderr.contains(said), "{words:?}: {ended:#?}");
    }
}

#[test]
fn a_repository_that_is_named_has_to_be_there() {
    let herma = Herma::new();
    for command in ["destinations", "probe"] {
        for repo in ["nowhere", "contracts"] {
            let ended = herma.run(&[command, "--repo", repo]);
            assert_eq!(ended.code, Some(2), "{command} {repo}: {ended:#?}");
            assert!(ended.stderr.contains("--repo DIR"), "{command} {repo}: {ended:#?}");
        }
    }
    assert_eq!(herma.run(&["destinations"]).code, Some(0), "where nobody named one there may be none");
}

/// A chosen confinement must not silently be replaced.
#[test]
fn a_choice_that_cannot_be_read_stops_a_run() {
    let herma = Herma::new();
    Repository::of_fixture(&herma, "string-slugify");
    assert_eq!(herma.run(&["destination", "set", "sandbox", "--repo", "repo"]).code, Some(0));
    let dir = herma.home().join("destinations");
    let file = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let good = std::fs::read_to_string(&file).unwrap();
    let (contract, script) = (herma.contract(&ON_REPOSITORY), herma.script("fix"));
    let run = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    for bad in ["", "{}", &good.replace("sandbox", "hots"), &good.replace("repo/", "other/")] {
        assert_ne!(bad, good);
        std::fs::write(&file, bad).unwrap();
        let ended = herma.run(&run);
        assert_eq!(ended.code, Some(2), "{bad}: {ended:#?}");
        assert!(ended.stderr.contains("herma destination set"), "{ended:#?}");
    }
    herma.assert_no_run();
}

#[test]
fn the_probes_alone_show_what_each_layer_denies() {
    let herma = Herma::new();
    let found = herma.json(&["probe", "--json"]);
    assert_eq!((&found["ok"], &found["destination"]), (&true.into(), &"sandbox".into()), "{found:#}");
    let probes = found["probes"].as_array().unwrap();
    assert!(probes.len() > 40, "{found:#}");
    for probe in probes {
        assert!(probe["name"].is_string() && probe["wall"].is_string() && probe["detail"].is_string());
        assert_eq!(probe["denied"], true, "{probe}");
    }
    let said = herma.run(&["probe", "--destination", "sandbox"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let all = probes.len();
    assert!(
        said.stdout.ends_with(&format!("\n{all} of {all} probes were denied in `sandbox`.\n")),
        "{said:#?}"
    );
    assert!(!said.stdout.contains("NOT DENIED"), "{said:#?}");
    herma.assert_no_run();

    // Without confinement the command says so, and a script can rely on it.
    let ended = herma.run(&["probe", "--destination", "host", "--json"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert_eq!(ended.json()["ok"], false);
    let ended = herma.run(&["probe", "--destination", "docker"]);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("no image is named"), "{ended:#?}");
    herma.assert_no_run();
}
