//! `herma env shell`: a copy of the base in the environment, behind the confinement of verification.

use crate::kit::Herma;

const TERMS: [(&str, &str); 1] = [(
    "environment",
    "{ setup: [\"mkdir deps && echo made > deps/dep && echo home > $HOME/dep\"], cache: [deps] }",
)];

#[test]
fn a_shell_finds_the_base_and_the_environment_and_changes_neither() {
    let herma = Herma::new();
    let contract = herma.contract(&TERMS);
    let contract = contract.to_str().unwrap();
    let look = "cat deps/dep $HOME/dep; ls; sh tests/slugify_test.sh >/dev/null; echo \"test $?\"";
    let spoil = "echo spoiled > deps/dep; echo spoiled > $HOME/dep; rm slugify.sh";
    for _ in 0..2 {
        let ended = herma.run_typing(&format!("{look}\n{spoil}\nexit 3\n"), &["env", "shell", contract]);
        assert_eq!(ended.code, Some(1), "{ended:#?}");
        assert!(
            ended.stdout.starts_with("made\nhome\n") && ended.stdout.contains("slugify.sh\n"),
            "{ended:#?}"
        );
        assert!(ended.stdout.ends_with("test 1\n") && ended.stderr.contains("exit 3"), "{ended:#?}");
    }
    let layers = herma.json(&["env", "list", "--json"]);
    assert_eq!(layers["layers"].as_array().unwrap().len(), 2, "one build served both: {layers:#}");
    assert_eq!(herma.active(), [""; 0]);
    herma.assert_no_run();
}

#[test]
fn a_command_in_the_environment_is_confined_and_its_result_is_the_exit_code() {
    let herma = Herma::new();
    let contract = herma.contract(&TERMS);
    let contract = contract.to_str().unwrap();
    let run = |command: &[&str]| herma.run(&[&["env", "shell", contract, "--"][..], command].concat());
    let found = run(&["cat", "deps/dep"]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(0), "made\n"), "{found:#?}");
    let outside = herma.at("outside");
    assert_eq!(run(&["touch", outside.to_str().unwrap()]).code, Some(1));
    assert!(!outside.exists());
    let devices = run(&["cat", "/proc/net/dev"]);
    let names = devices.stdout.lines().skip(2).map(|line| line.split(':').next().unwrap().trim());
    assert_eq!(names.collect::<Vec<_>>(), ["lo"], "{devices:#?}");
    let missing = run(&["no-such-program"]);
    assert_eq!(missing.code, Some(1), "{missing:#?}");
    assert_eq!(herma.run(&["env", "shell", contract, "--json"]).code, Some(2));
}

#[test]
fn a_killed_shell_leaves_no_process_and_no_directory() {
    let herma = Herma::new();
    let contract = herma.contract(&TERMS);
    let started =
        herma.start(&["env", "shell", contract.to_str().unwrap(), "--", "sh", "-c", "echo here; sleep 600"]);
    crate::kit::until("the command runs", || started.stdout_so_far().contains("here"));
    assert!(started.kill().was_killed());
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    assert_eq!(herma.active(), [""; 0]);
    herma.assert_no_run();
}
