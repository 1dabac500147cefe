//! Tests of the layers.

use super::*;

fn rules(check: impl FnOnce(DefinitionRules<'_>)) {
    let secret_rule = |_: &str| None;
    check(DefinitionRules { tools: &["node", "npm"], secret_rule: &secret_rule });
}

fn paths(all: &[&str]) -> Vec<Pattern> {
    all.iter().map(|path| path.parse().unwrap()).collect()
}

fn own() -> WorkDefaults {
    WorkDefaults {
        allowed_paths: Some(paths(&["src/**", "tests/**"])),
        limits: "usd=2.00".parse().unwrap(),
        ..WorkDefaults::default()
    }
}

fn detected() -> WorkDefaults {
    let environment: EnvironmentDefinition = serde_json::from_str(r#"{"registries":["npm"]}"#).unwrap();
    WorkDefaults {
        allowed_paths: Some(paths(&["**"])),
        verify: Some(vec!["npm test".to_owned()]),
        environment: Some(environment),
        ..WorkDefaults::default()
    }
}

fn apply(text: &str) -> Result<WorkDefaults, String> {
    let mut result = Err(String::new());
    rules(|rules| {
        result = PlacedNarrowing::parse(text.as_bytes(), rules)
            .and_then(|file| {
                file.apply(WorkDefaults::default(), own(), detected(), |outer, inner| outer == inner)
            })
            .map_err(|bad| bad.to_string());
    });
    result
}

#[test]
fn a_layer_wins_value_by_value() {
    let flags = WorkDefaults { verify: Some(vec!["true".to_owned()]), ..WorkDefaults::default() };
    let all = flags.over(own()).over(detected());
    assert_eq!(all.verify, Some(vec!["true".to_owned()]));
    assert_eq!(all.allowed_paths, own().allowed_paths);
    assert_eq!(all.environment, detected().environment);
}

#[test]
fn a_repository_narrows() {
    let all = apply(
        "allowed_paths: [src/**]\nverify: [npm run lint, npm test]\nlimits: { usd: 1.50, tokens: 5k }\n",
    );
    let all = all.unwrap();
    assert_eq!(all.allowed_paths, Some(paths(&["src/**"])));
    assert_eq!(all.verify.unwrap(), ["npm test", "npm run lint"]);
    assert_eq!(all.limits.usd.unwrap().to_string(), "1.50");
    assert_eq!(all.limits.tokens.unwrap().to_string(), "5k");
    assert_eq!(apply("# nothing yet\n").unwrap(), own().over(detected()));
}

#[test]
fn a_value_that_widens_is_an_error_with_its_place() {
    for (text, place, why) in [
        ("allowed_paths:\n  - src/**\n  - docs/**\n", "line 3, column 5", "`docs/**` is not within"),
        ("limits:\n  usd: 2.01\n", "line 2, column 8", "`limits.usd` is 2.01, and the limit is 2.00"),
        ("limits: { total: 21m }\n", "line 1, column 18", "`limits.total` is 21m"),
        ("environment:\n  registries: [npm, pypi]\n", "line 2, column 21", "the registry `pypi` adds hosts"),
        ("egress: [example.org]\n", "line 1, column 1", "unknown key `egress`"),
        ("lift_paths: [.github/**]\n", "line 1, column 1", "unknown key `lift_paths`"),
        ("environment: { tools: [cobol] }\n", "line 1, column 24", "unknown tool `cobol`"),
    ] {
        let error = apply(text).unwrap_err();
        assert!(error.starts_with(place) && error.contains(why), "{text}: {error}");
    }
}

#[test]
fn a_persons_choice_for_a_repository_wins_over_the_repositorys_own() {
    rules(|rules| {
        let file = PlacedNarrowing::parse(b"engine: codex\nmodel: a/b\n", rules).unwrap();
        let settings = WorkDefaults { engine: Some("pi".parse().unwrap()), ..WorkDefaults::default() };
        let same = |outer: &Pattern, inner: &Pattern| outer == inner;
        let of_repository = file.apply(WorkDefaults::default(), own(), settings.clone(), same).unwrap();
        assert_eq!(of_repository.engine.unwrap().as_str(), "codex");
        let chosen = WorkDefaults { engine: Some("claude".parse().unwrap()), ..own() };
        let of_person = file.apply(WorkDefaults::default(), chosen, settings, same).unwrap();
        assert_eq!(of_person.engine.unwrap().as_str(), "claude");
        assert_eq!(of_person.model.unwrap().to_string(), "a/b");
    });
}

#[test]
fn kept_defaults_survive_writing_and_reading() {
    let kept = RepositoryDefaults { repository: "/r/.git".into(), defaults: own().over(detected()) };
    let text = serde_json::to_vec_pretty(&kept).unwrap();
    rules(|rules| {
        assert_eq!(RepositoryDefaults::parse(&text, rules).unwrap(), kept);
        let bad = RepositoryDefaults::parse(b"repository: /r\ndefaults:\n  modle: a/b\n", rules).unwrap_err();
        assert_eq!((bad.line, bad.column), (Some(3), Some(3)));
        assert!(bad.to_string().contains("did you mean `model`?"), "{bad}");
    });
}

#[test]
fn a_flag_replaces_what_the_repository_says() {
    rules(|rules| {
        let text = b"allowed_paths: [docs/**]\nverify: [npm run lint]\nlimits: { usd: 9, tokens: 5k }\n";
        let file = PlacedNarrowing::parse(text, rules).unwrap();
        let flags = WorkDefaults {
            allowed_paths: Some(paths(&["lib/**"])),
            verify: Some(vec!["true".to_owned()]),
            limits: "usd=5.00".parse().unwrap(),
            ..WorkDefaults::default()
        };
        let all = file.apply(flags.clone(), own(), detected(), |_, _| false).unwrap();
        assert_eq!((all.allowed_paths, all.verify), (flags.allowed_paths, flags.verify));
        let limits = (all.limits.usd.unwrap().to_string(), all.limits.tokens.unwrap().to_string());
        assert_eq!(limits, ("5.00".to_owned(), "5k".to_owned()));
    });
}
