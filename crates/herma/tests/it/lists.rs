//! `herma runs`, `herma show` and `herma diff` for people: their own work first, one screen, colours and a pager.

use std::fs;

use crate::kit::{ANSWERS, Herma, MODEL, ON_REPOSITORY, Repository, fix_and, run_tool};

#[test]
fn runs_are_a_persons_own_work_and_can_be_filtered() {
    let herma = Herma::new();
    herma.demo(&["--destination", "host"]);
    let none = herma.run(&["runs"]).stdout;
    assert_eq!(none, "no runs of your own yet (1 of proofs, comparisons and demos: --all)\n");
    Repository::of_fixture(&herma, "string-slugify");
    herma.play(&fix_and(&[]), &ON_REPOSITORY).assert_pass();
    herma.play("steps: []", &[("risk", "medium")]);
    let named = |args: &[&str]| {
        let listed = herma.json(&[&["runs", "--json"], args].concat());
        listed["runs"].as_array().unwrap().len()
    };
    for (args, count) in [
        (&[][..], 2),
        (&["--all"], 3),
        (&["--status", "fail"], 1),
        (&["--engine", "fake"], 2),
        (&["--engine", "claude"], 0),
        (&["--contract", "trim-slug"], 2),
        (&["--contract", "other"], 0),
        (&["--repo", "repo"], 1),
        (&["--repo", "../repo"], 1),
        (&["--repo", "fixture:string-slugify"], 1),
        (&["--since", "2d"], 2),
        (&["--since", "2999-01-01T00:00:00Z"], 0),
        (&["--all", "--limit", "1"], 1),
    ] {
        assert_eq!(named(args), count, "{args:?}");
    }
    let bad = herma.run(&["runs", "--since", "yesterday"]);
    assert_eq!(bad.code, Some(2), "{bad:#?}");
    let line = herma.run(&["runs"]).stdout;
    let lasted = |word: &str| word.ends_with('s') && word.starts_with(|c: char| c.is_ascii_digit());
    let is_shown = |line: &str| line.contains("trim-slug") && line.split_whitespace().any(lasted);
    assert!(line.lines().all(is_shown), "{line}");
}

#[test]
fn a_run_fits_on_one_screen() {
    let herma = Herma::new();
    Repository::of_fixture(&herma, "string-slugify");
    let run = herma.play(&fix_and(&["- say: I joined runs of blanks and cut both ends."]), &ON_REPOSITORY);
    run.assert_pass();
    let shown = herma.run(&["show"]).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() <= 24, "{shown}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    let short = run.report.run_id.short();
    assert_eq!(lines[0], format!("pass  trim-slug  {short}"));
    for line in [
        "why      every gate held and every check passed",
        "task     slugify keeps outer and repeated whitespace",
        "changed  1 file changed, +1 -2",
        "verify   sh tests/slugify_test.sh  passes, ",
        "time     ",
        &format!("next     herma diff {short}"),
        &format!("herma apply {short}"),
        &format!("herma show {short} --full"),
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(shown.contains("target   ../repo, base tree "), "{shown}");
    let full = herma.run(&["show", "--full"]).stdout;
    assert!(full.starts_with("# trim-slug: pass\n"), "{full}");
    assert_eq!(herma.run(&["show", "--report"]).stdout, full);
    let stat = herma.run(&["diff", "--stat"]).stdout;
    assert!(stat.starts_with(" slugify.sh | ") && stat.contains(" 1 file changed, +1 -2"), "{stat}");
}

#[test]
fn a_failed_run_says_why_and_what_to_do() {
    let herma = Herma::new();
    let run = herma.play("steps: [{ write: { path: README.md, text: x } }]", &[]);
    let shown = herma.run(&["show"]).stdout;
    let record = &run.report.blockers[0];
    assert!(shown.contains(&format!("why      {}: ", record.blocker)), "{shown}");
    assert!(shown.contains("fix      Look at the changed files"), "{shown}");
}

#[test]
fn long_output_goes_through_the_pager_on_a_terminal_only() {
    let mut herma = Herma::new();
    let long = "x\\n".repeat(200);
    let steps = format!("steps:\n  - write: {{ path: slugify.sh, text: \"{long}\" }}\n");
    herma.play(&steps, &[]);
    let pager = herma.file("pager.sh", "#!/bin/sh\nsed 's/^/PAGED /'\n");
    herma.set("PAGER", format!("sh {}", pager.display()));
    herma.set("TERM", "xterm");
    let on_terminal = |args: &str, variables: &str| {
        let command = format!("{variables} {} {args}", crate::kit::HERMA);
        let home = format!("HERMA_HOME={}", herma.home().display());
        let pager = format!("PAGER=sh {}", pager.display());
        let user = format!("HOME={}", herma.at("user").display());
        let path = format!("PATH={}", crate::kit::environment("PATH").to_string_lossy());
        let env = ["-i".to_owned(), home, pager, user, path, "TERM=xterm".to_owned()];
        let script = ["script".to_owned(), "-qec".to_owned(), command, "/dev/null".to_owned()];
        let args: Vec<String> = env.into_iter().chain(script).collect();
        let args: Vec<&std::ffi::OsStr> = args.iter().map(AsRef::as_ref).collect();
        run_tool("env", &args, &[])
    };
    let shown = on_terminal("diff", "");
    assert!(shown.lines().count() > 200 && shown.lines().all(|line| line.starts_with("PAGED ")), "{shown}");
    assert!(shown.contains("\u{1b}[32m+x"), "{shown}");
    let plain = on_terminal("diff", "NO_COLOR=1");
    assert!(plain.contains("PAGED +x") && !plain.contains('\u{1b}'), "{plain}");
    for (args, variables) in
        [("--no-pager diff", ""), ("diff", "TERM=dumb"), ("diff --stat", ""), ("diff", "PAGER=cat")]
    {
        let direct = on_terminal(args, variables);
        assert!(!direct.contains("PAGED") && direct.contains("slugify.sh"), "{args}: {direct}");
    }
    let secrets = "HERMA_APPROVER_TOKEN=t-marked HERMA_STORE_PASSWORD=p-marked PAGER='cat; env'";
    let told = on_terminal("diff", secrets);
    assert!(told.contains("HERMA_HOME=") && !told.contains("-marked"), "{told}");
    let piped = herma.run(&["diff"]);
    assert!(!piped.stdout.contains("PAGED") && !piped.stdout.contains('\u{1b}'), "{piped:#?}");
    fs::remove_file(pager.as_path()).unwrap();
    let lost = on_terminal("diff", "PAGER=no-such-pager");
    assert!(lost.contains("the pager failed") && lost.contains("+x"), "{lost}");
}

#[test]
fn without_a_terminal_a_run_shows_its_calls_and_usage_as_lines() {
    let herma = Herma::with_model(ANSWERS);
    let steps = ["- tool: { name: shell, command: npm test }", "- ask: { prompt: hi, must: true }"];
    let (contract, script) = (herma.contract(&[MODEL]), herma.script(&fix_and(&steps)));
    let ended = herma.run(&["run", contract.to_str().unwrap(), "--script", script.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let after =
        |start: &str| ended.stderr.split_once(start).unwrap_or_else(|| panic!("{start}: {ended:#?}")).1;
    assert!(after("the engine works\n").contains("npm test"), "{ended:#?}");
    let usage = after("npm test").split_once(" model calls, ").unwrap().1;
    assert!(usage.contains(" tokens, $0.0"), "{ended:#?}");
    assert!(!ended.stderr.contains('\u{1b}') && !ended.stderr.contains('\r'), "{ended:#?}");
}
