//! Detection: what is proposed for typical repositories, and why.

use std::fs;

use herma_core::environment::{Registry, SetupOn};
use herma_environments::definition::parse;
use herma_environments::detect::{Proposal, RepositoryFiles, detect};

fn propose(files: &[(&str, &str)]) -> Proposal {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let file = dir.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let proposal = detect(&RepositoryFiles::list(dir.path()).unwrap());
    // A proposal is a definition that the parser accepts.
    let text = serde_json::to_string(&proposal.definition).unwrap();
    assert_eq!(parse(text.as_bytes(), &[]).unwrap(), proposal.definition);
    proposal
}

fn tools(proposal: &Proposal) -> Vec<String> {
    proposal.definition.tools.iter().map(ToString::to_string).collect()
}

#[test]
fn python_downloads_wheels_with_the_network_and_installs_them_without() {
    let proposal = propose(&[
        (
            "pyproject.toml",
            "[build-system]\nrequires = ['hatchling']\n[project]\nname = 'a'\ndependencies = ['idna>=3']\n\
             [dependency-groups]\ntests = ['pytest', {include-group = 'more'}]\nmore = ['pretend']\n\
             [tool.pytest.ini_options]\naddopts = '--cov'\n",
        ),
        ("src/a/__init__.py", ""),
        ("tests/test_a.py", "import freezegun\nfrom a import x\n"),
        (".python-version", "3.12.4\n"),
    ]);
    let definition = &proposal.definition;
    assert_eq!(tools(&proposal), ["python@3.12"]);
    assert_eq!(definition.registries, [Registry::Pypi]);
    assert!(definition.fetch.iter().all(|command| command.contains("--only-binary :all:")));
    assert!(definition.fetch[0].contains("hatchling") && definition.fetch[0].contains("editables"));
    for package in ["'idna>=3'", "pytest", "pretend", "freezegun", "pytest-cov"] {
        assert!(definition.fetch[1].contains(package), "{package}: {:?}", definition.fetch);
    }
    assert!(definition.setup[0].contains("-m venv"));
    assert!(definition.setup.iter().skip(1).all(|command| command.contains("--no-index")));
    assert_eq!(definition.setup_on, SetupOn::Base);
    assert_eq!(proposal.verify, ["python -m pytest -q"]);
    assert!(proposal.allowed_paths.contains(&"src/**".to_owned()));
    assert!(proposal.reasons.iter().any(|reason| reason.contains("`tests/test_a.py` imports freezegun")));
}

#[test]
fn the_metadata_of_a_source_distribution_is_put_back() {
    let proposal = propose(&[
        ("setup.py", "from setuptools import setup\n"),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    idna\n    # not this\n[options.extras_require]\ntest =\n    nose\n",
        ),
        ("src/a.egg-info/PKG-INFO", "Name: a\n"),
        ("src/a/_speedups.c", ""),
        ("tests/test_a.py", "import unittest\n"),
    ]);
    let last = proposal.definition.setup.last().unwrap();
    assert!(last.starts_with("tar -cf") && last.contains("src/a.egg-info") && last.contains("--editable ."));
    assert!(proposal.definition.fetch[1].ends_with(" idna nose"), "{:?}", proposal.definition.fetch);
    assert_eq!(tools(&proposal), ["python", "gcc"]);
    // Without the first command the extension of the base would be tested.
    let [build, test] = &proposal.verify[..] else { panic!("{:?}", proposal.verify) };
    assert!(last.contains(build) && build.contains("--no-index"), "{build}");
    assert_eq!(test, "python -m unittest discover");
}

#[test]
fn a_text_of_the_repository_is_one_word_for_the_shell() {
    let proposal = propose(&[
        ("pyproject.toml", "[project]\nname = 'a'\ndependencies = [\"x; $(touch /tmp/y) '`z`'\"]\n"),
        ("tests/test_a.py", ""),
    ]);
    let quoted = r"'x; $(touch /tmp/y) '\''`z`'\'''";
    assert!(proposal.definition.fetch[1].contains(quoted), "{:?}", proposal.definition.fetch);
}

#[test]
fn node_fetches_without_scripts_and_rebuilds_without_network() {
    let manifest = "{\"scripts\": {\"test\": \"mocha\"}, \"devDependencies\": {\"mocha\": \"*\"}}";
    let locked = propose(&[
        ("package.json", manifest),
        ("package-lock.json", "{\"packages\": {\"node_modules/a\": {\"hasInstallScript\": true}}}"),
        (".nvmrc", "v22.3.0\n"),
        ("lib/a.js", ""),
    ]);
    assert_eq!(tools(&locked), ["node@22", "npm"]);
    assert!(locked.definition.fetch[0].starts_with("npm ci --ignore-scripts"));
    assert_eq!(locked.definition.setup, ["npm rebuild"]);
    assert_eq!(locked.definition.setup_on, SetupOn::Inputs);
    assert_eq!(locked.verify, ["npm test"]);
    let unlocked = propose(&[("package.json", manifest), ("lib/a.js", "")]);
    assert!(unlocked.definition.fetch[0].starts_with("npm install --ignore-scripts --no-package-lock"));
    assert!(unlocked.definition.setup.is_empty());
    assert!(unlocked.questions.iter().any(|question| question.contains("lock file")));
    let pnpm = propose(&[("package.json", manifest), ("pnpm-lock.yaml", ""), ("lib/a.js", "")]);
    assert_eq!(
        (tools(&pnpm), pnpm.verify),
        (vec!["node".to_owned(), "pnpm".to_owned()], vec!["pnpm test".to_owned()])
    );
    let none = propose(&[("package.json", "{\"scripts\": {\"test\": \"echo no test specified; exit 1\"}}")]);
    assert!(
        none.verify.is_empty() && none.questions.iter().any(|question| question.contains("no test command"))
    );
}

#[test]
fn cargo_gets_empty_files_for_the_targets_that_manifests_name() {
    let proposal = propose(&[
        (
            "Cargo.toml",
            "[package]\nname = 'a'\n[lib]\npath = 'lib/a.rs'\n[[bench]]\nname = 'speed'\n[workspace]\nmembers = ['b']\n",
        ),
        ("lib/a.rs", ""),
        ("benches/speed.rs", ""),
        ("benches/other.rs", ""),
        ("b/Cargo.toml", "[package]\nname = 'b'\n"),
        ("b/src/main.rs", ""),
        ("Cargo.lock", ""),
    ]);
    let command = &proposal.definition.fetch[0];
    assert!(command.starts_with("for f in b/src/main.rs benches/speed.rs lib/a.rs; do"), "{command}");
    assert!(command.ends_with("cargo fetch --locked"));
    assert_eq!(proposal.verify, ["cargo test --offline"]);
}

#[test]
fn other_ecosystems_have_their_commands() {
    let go = propose(&[("go.mod", "module a\nrequire b v1\n"), ("a.go", ""), ("sub/b.go", "")]);
    assert_eq!(go.definition.fetch, ["go mod download"]);
    assert_eq!(go.allowed_paths, ["sub/**", "/*.go"]);
    assert!(go.definition.setup[0].starts_with("go test -run '^$'"));
    assert!(propose(&[("go.mod", "module a\n"), ("a.go", "")]).definition.fetch.is_empty());

    let maven = propose(&[
        ("pom.xml", "<project><dependency><groupId>org.apache.commons</groupId></dependency></project>"),
        ("src/test/java/ATest.java", "import org.junit.jupiter.api.Test;"),
        ("src/main/java/A.java", ""),
        ("src/site/profile.jacoco", ""),
    ]);
    assert_eq!(tools(&maven), ["java", "maven"]);
    assert!(maven.definition.fetch[0].contains("org.junit.jupiter.api.Test"));
    assert!(maven.definition.fetch[0].contains("mkdir -p src/main/java src/site src/test/java"));
    assert!(maven.definition.fetch[0].contains(": > src/site/profile.jacoco"));
    assert_eq!(maven.verify, ["mvn --batch-mode --offline test"]);
    let apache = [("pom.xml", "<parent><groupId>org.apache.commons</groupId></parent>")];
    assert_eq!(propose(&apache).verify, ["mvn --batch-mode --offline -Drat.skip test"]);

    let cmake = propose(&[("CMakeLists.txt", ""), ("Makefile", "test:\n"), ("src/a.c", "")]);
    assert_eq!(cmake.verify.len(), 3);
    assert!(cmake.definition.fetch.is_empty() && cmake.definition.registries.is_empty());
    let make = propose(&[("Makefile", "all:\n\ncheck: all\n\ttrue\n"), ("a.c", "")]);
    assert_eq!(make.verify, ["make check"]);
    let configure = propose(&[("configure", ""), ("Makefile.in", ""), ("a.c", "")]);
    assert_eq!(configure.verify, ["./configure", "make", "make check"]);
}

#[test]
fn configuration_of_other_tools_is_named_and_not_run() {
    let proposal = propose(&[
        ("go.mod", "module a\n"),
        ("a.go", ""),
        (".devcontainer/devcontainer.json", "{\n// comment\n\"postCreateCommand\": \"make deps\"\n}"),
        (
            ".github/workflows/copilot-setup-steps.yml",
            "jobs:\n  copilot-setup-steps:\n    steps:\n      - run: npm ci\n",
        ),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  a:\n    steps:\n      - run: |\n          go vet\n          go test -race ./...\n      - run: go test ./...\n",
        ),
    ]);
    for found in ["make deps", "npm ci", "go test -race ./..."] {
        assert!(
            proposal.questions.iter().any(|question| question.contains(found)),
            "{found}: {:?}",
            proposal.questions
        );
    }
    assert_eq!(
        proposal.questions.len(),
        3,
        "the command that is proposed is no question: {:?}",
        proposal.questions
    );
    assert_eq!(proposal.verify, ["go test ./..."]);
    let empty = propose(&[("README", "")]);
    assert_eq!(empty.questions.len(), 2);
}

fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

#[test]
fn requirements_files_that_include_each_other_are_read_once() {
    // Each of the files includes all of them several times: without a set of visited files that is 30 to the power of 8.
    let includes = repeated(30, |at| format!("-r {at}.txt\n"));
    let names: Vec<String> = (0..30).map(|at| format!("{at}.txt")).collect();
    let contents: Vec<String> = (0..30).map(|at| format!("{includes}package-{at}\n")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&contents).map(|(name, content)| (name.as_str(), content.as_str())).collect();
    files.push(("requirements.txt", "-r 0.txt\n"));
    let proposal = propose(&files);
    let fetch = proposal.definition.fetch.join("\n");
    for at in [0, 7, 29] {
        assert_eq!(
            fetch.matches(&format!("package-{at}\n")).count()
                + fetch.matches(&format!("package-{at} ")).count(),
            1
        );
    }
}

#[test]
fn dependency_groups_that_include_each_other_are_read_once() {
    let include = repeated(30, |at| format!("{{include-group = 'g{at}'}}, "));
    let groups = repeated(30, |at| format!("g{at} = [{include}'package-{at}']\n"));
    let pyproject =
        format!("[project]\nname = 'a'\n[dependency-groups]\ntests = [{include}'pytest']\n{groups}");
    let proposal = propose(&[("pyproject.toml", &pyproject), ("tests/test_a.py", "")]);
    let run = &proposal.definition.fetch[1];
    assert_eq!(run.matches("package-").count(), 30, "{run}");
}

#[test]
fn a_repository_with_many_requirements_gets_a_bounded_proposal() {
    let requirements = repeated(200_000, |at| format!("package-{at}\n"));
    let proposal = propose(&[("requirements.txt", &requirements)]);
    let packages = proposal.definition.fetch[0].matches("package-").count();
    assert!((1_000..=2_000).contains(&packages), "{packages}");
}

#[test]
fn a_requirement_that_begins_with_a_dash_is_no_package() {
    let proposal = propose(&[
        (
            "pyproject.toml",
            "[build-system]\nrequires = ['--index-url=https://a.example', 'hatchling']\n[project]\nname = 'a'\n\
             dependencies = ['-e .', ' --extra-index-url=https://b.example', 'idna']\n",
        ),
        ("tox.ini", "[testenv]\ndeps =\n    --pre\n    py3: --find-links=https://c.example\n    attrs\n"),
        ("tests/test_a.py", "import pytest\n"),
    ]);
    let commands = [&proposal.definition.fetch[..], &proposal.definition.setup[..]].concat().join("\n");
    assert!(commands.contains("hatchling") && commands.contains("idna attrs pytest"), "{commands}");
    for option in ["example", "-e .", "--pre"] {
        assert!(!commands.contains(option), "{option}: {commands}");
    }
}

#[test]
fn names_of_a_repository_cannot_control_the_terminal() {
    let proposal = propose(&[
        ("package.json", "{\"scripts\": {\"test\": \"mocha \\u001b[2J\\u202e\"}}"),
        ("\u{1b}[31m.csproj", ""),
        (".devcontainer.json", "{\"postCreateCommand\": \"make \\u200b\\u0007\"}"),
    ]);
    let sentences = [&proposal.reasons[..], &proposal.questions[..]].concat();
    assert!(sentences.iter().any(|sentence| sentence.contains("mocha \\u{1b}[2J\\u{202e}")), "{sentences:?}");
    for sentence in sentences {
        assert!(!sentence.contains(['\u{1b}', '\u{7}', '\u{200b}', '\u{202e}']), "{sentence:?}");
    }
}
