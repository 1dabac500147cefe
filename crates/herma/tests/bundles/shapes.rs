//! Bundles that are made to be costly, each of about a given number of bytes.

use herma_core::blocker::BlockerRecord;
use herma_core::event::{Event, EventType, Source};
use herma_core::model_call::{Chain, Charge, Ended, Endpoint, Unchained};
use herma_core::report::{ChangedFile, Entry, Mode, PathRule, PathViolation};
use herma_core::{Blocker, Digest, RepoPath};
use herma_evidence::layout;
use herma_git::{ObjectFormat, blob_id};
use serde_json::{Map, Value, json};

use crate::binary_patch;
use crate::forge::Forge;

type Shape = fn(usize) -> Forge;

/// The shapes, by what they have too much of.
pub(crate) const ALL: &[(&str, Shape)] = &[
    ("a binary patch that inflates to gigabytes", inflating),
    ("a binary patch of many deltas that copy", copying),
    ("hunks that fit elsewhere than they say", wandering),
    ("tiny files", tiny_files),
    ("changed files that lie deep", deep_paths),
    ("changed files with long names", long_names),
    ("patterns for many changed files", many_patterns),
    ("patterns of wildcards", wildcards),
    ("patterns that match in many ways", ambiguous),
    ("lists of the report", long_lists),
    ("changed tests among changed files", changed_tests),
    ("one changed test, listed again and again", repeated_test),
    ("missing gates among blockers", missing_gates),
    ("reasons for what does not apply", many_reasons),
    ("path violations", violations),
    ("events of the agent", agent_events),
    ("events of the harness", harness_events),
    ("child runs", children),
    ("events of many keys", wide_events),
    ("events of long lists", long_events),
    ("an event that is nested deep", deep_event),
    ("model calls", model_calls),
    ("a decision that is nested deep", |bytes| with(layout::DECISION, &"[".repeat(bytes.min(4 << 20)))),
    ("a record of confinement that is nested deep", |bytes| with(layout::CONFINEMENT, &"[".repeat(bytes))),
    ("a contract that is nested deep", |bytes| {
        front_matter(&format!("x: {}", "[".repeat(bytes.min(900_000))))
    }),
    ("a contract with anchors", |_| front_matter(&anchors())),
    ("commands of a contract", |bytes| {
        front_matter(&format!("success: [{}]", "a,".repeat(bytes.min(900_000) / 2)))
    }),
    ("one line of a log", |bytes| with(layout::ENGINE_STDOUT, &"a".repeat(bytes))),
    ("one line of the patch", long_line),
    ("steps", |bytes| {
        with(layout::TRACE, &"{\"step\":\"start\",\"ts\":\"2026-11-18T09:27:42.7Z\"}\n".repeat(bytes / 49))
    }),
    ("ends of commands in the test log", |bytes| {
        with(layout::TEST_LOG, &"$ sh\n[exit 0]\n".repeat(bytes / 14))
    }),
    ("a report for people", |bytes| with(layout::REPORT_MD, &"# a\n".repeat(bytes / 4))),
    ("starts of tokens", |bytes| with(layout::ENGINE_STDOUT, &"sk-".repeat(bytes / 3))),
    ("starts of other tokens", |bytes| with(layout::ENGINE_STDERR, &"ghp_".repeat(bytes / 4))),
    ("starts of private keys", |bytes| {
        with(layout::ENGINE_STDOUT, &"-----BEGIN RSA PRIVATE KEY-----\n".repeat(bytes / 32))
    }),
    ("starts of web tokens", |bytes| with(layout::ENGINE_STDOUT, &"eyJhbGci.".repeat(bytes / 9))),
    ("names of secrets", |bytes| with(layout::ENGINE_STDOUT, &"api_key=password: \"".repeat(bytes / 19))),
    ("addresses with names", |bytes| with(layout::ENGINE_STDOUT, &"http://a:".repeat(bytes / 9))),
];

/// Those that hold in themselves, so that git is asked.
pub(crate) const HANDED_TO_GIT: &[&str] =
    &["a binary patch that inflates to gigabytes", "a binary patch of many deltas that copy", "tiny files"];

/// The bundle of a talkative agent: half of it events, half of it a log.
pub(crate) fn honest(bytes: usize) -> Forge {
    let mut forge = agent_events(bytes / 2);
    forge.put(layout::ENGINE_STDOUT, "a line of what the engine prints on its way\n".repeat(bytes / 2 / 45));
    forge
}

fn base() -> Forge {
    Forge::of(crate::honest())
}

fn with(name: &str, text: &str) -> Forge {
    let mut forge = base();
    forge.report.not_applicable.remove(name);
    forge.renders = name != layout::REPORT_MD;
    forge.put(name, text);
    forge
}

fn front_matter(more: &str) -> Forge {
    let mut forge = base();
    let contract = forge.text(layout::CONTRACT).replacen("---\n", &format!("---\n{more}\n"), 1);
    forge.contract(&contract);
    forge
}

fn anchors() -> String {
    let list = |of: &str| [of; 9].join(", ");
    let level = |at: u32| format!("x{at}: &x{at} [{}]\n", list(&format!("*x{}", at - 1)));
    format!("x0: &x0 [{}]\n{}", list("a"), (1..12).map(level).collect::<String>())
}

/// The same bundle for a contract that allows these paths.
fn allowing(patterns: &[String]) -> Forge {
    let mut forge = base();
    let listed = patterns.iter().flat_map(|pattern| ["\n  - \"", pattern.as_str(), "\""]).collect::<String>();
    let contract = forge.text(layout::CONTRACT);
    let contract = contract.replace("[/slugify.sh, \"/tests/**\"]", &format!("{listed}\n  - /slugify.sh"));
    assert!(contract.contains(&listed), "{contract}");
    forge.contract(&contract);
    forge
}

fn blob(content: &[u8]) -> String {
    blob_id(ObjectFormat::Sha1, content.len() as u64, content).unwrap()
}

fn added(path: &str, id: &str) -> ChangedFile {
    let new = Some(Entry { mode: Mode::File, id: id.to_owned() });
    ChangedFile { path: RepoPath::new(path).unwrap(), old: None, new }
}

/// One binary patch of the file that the contract allows to change.
fn binary(forward: &str) -> Forge {
    let mut forge = base();
    let new = "1".repeat(40);
    let change = &mut forge.report.changed_files[0];
    let old = change.old.as_ref().unwrap().id.clone();
    change.new.as_mut().unwrap().id.clone_from(&new);
    forge.put(layout::PATCH, binary_patch::patch("slugify.sh", &old, &new, forward));
    forge
}

fn inflating(bytes: usize) -> Forge {
    binary(&binary_patch::zeros(bytes * 3 / 4))
}

fn copying(bytes: usize) -> Forge {
    let content = herma_fixtures::find("string-slugify").unwrap();
    let old = content.files.iter().find(|file| file.path == "slugify.sh").unwrap();
    binary(&binary_patch::copies(old.bytes.len(), bytes * 3 / 4))
}

/// A new file of many lines, and then hunks that belong to its other end: git looks for the place of each.
fn wandering(bytes: usize) -> Forge {
    let mut forge = base();
    let patch = forge.text(layout::PATCH);
    let lines = bytes / 2 / 8;
    let mut text = format!("{patch}@@ -400,0 +400,{lines} @@\n");
    text.extend((0..lines).map(|at| format!("+{at:06}\n")));
    text.extend(
        (0..bytes / 2 / 40).map(|at| format!("@@ -{0},1 +{0},1 @@\n-{1:06}\n+{1:06}\n", 400, lines - 1 - at)),
    );
    forge.put(layout::PATCH, text);
    forge
}

fn tiny_files(bytes: usize) -> Forge {
    let mut forge = allowing(&["**".to_owned()]);
    let (none, id) = ("0".repeat(40), blob(b""));
    let mut patch = String::new();
    for at in 0..bytes / 560 {
        let name = format!("d/{at:06}");
        let header =
            ["diff --git a/", &name, " b/", &name, "\nnew file mode 100644\nindex ", &none, "..", &id, "\n"];
        patch.extend(header);
        forge.report.changed_files.push(added(&name, &id));
    }
    forge.report.changed_files.sort_by(|a, b| a.path.cmp(&b.path));
    patch += &forge.text(layout::PATCH);
    forge.put(layout::PATCH, patch);
    forge.count_changes();
    forge
}

fn deep_paths(bytes: usize) -> Forge {
    let mut forge = base();
    let deep = "a/".repeat(1_900);
    let files = (0..bytes / 8_000).map(|at| added(&format!("{at:05}/{deep}a"), &"1".repeat(40)));
    forge.report.changed_files.extend(files);
    forge
}

fn long_names(bytes: usize) -> Forge {
    let mut forge = base();
    let files =
        (0..bytes / 8_200).map(|at| added(&format!("{at:05}{}", "A.".repeat(1_950)), &"1".repeat(40)));
    forge.report.changed_files.extend(files);
    forge
}

fn many_patterns(bytes: usize) -> Forge {
    let patterns: Vec<String> = (0..9_000).map(|at| format!("/{at:05}-{}*/**/x", "a".repeat(60))).collect();
    let mut forge = allowing(&patterns[..(bytes / 2 / 80).min(9_000).min(800_000 / 80)]);
    files_like(&mut forge, bytes / 2, |at| format!("{at:05}-{}", "a".repeat(90)));
    forge
}

fn wildcards(bytes: usize) -> Forge {
    let patterns: Vec<String> =
        (0..(bytes / 2).min(800_000) / 210).map(|at| format!("{}{at:05}", "*a".repeat(100))).collect();
    let mut forge = allowing(&patterns);
    files_like(&mut forge, bytes / 2, |at| format!("{}{at:05}", "a".repeat(1_000)));
    forge
}

/// Patterns for which a deterministic automaton would have a state for each set of their places, with fewer wildcards than
/// the 1,000 that a contract may have.
fn ambiguous(bytes: usize) -> Forge {
    let patterns: Vec<String> =
        (0..34).map(|at| format!("*{}{}", ["a", "b", "ab"][at % 3], "?".repeat(10 + at))).collect();
    let mut forge = allowing(&patterns);
    let mut seed = 1u32;
    let mut letter = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { 'a' } else { 'b' }
    };
    let mut names = Vec::new();
    for at in 0..bytes / 2_300 {
        names.push(format!("{at:05}{}/c", (0..1_000).map(|_| letter()).collect::<String>()));
    }
    files_like(&mut forge, bytes, |at| names[at % names.len()].clone());
    forge
}

fn files_like(forge: &mut Forge, bytes: usize, name: impl Fn(usize) -> String) {
    let each = 2 * name(0).len() + 260;
    forge.report.changed_files.extend((0..bytes / each).map(|at| added(&name(at), &"1".repeat(40))));
}

fn long_lists(bytes: usize) -> Forge {
    let mut forge = base();
    let path = RepoPath::new("a").unwrap();
    forge.report.ignored_files = vec![path.clone(); bytes / 2 / 13];
    forge.report.walls = vec![String::new(); bytes / 2 / 9];
    forge.report.changed_tests = Vec::new();
    forge
}

/// Every changed file is a test and decides what verification does.
fn changed_tests(bytes: usize) -> Forge {
    let mut forge = base();
    let name = |at: usize| format!("tests/{at:06}");
    files_like(&mut forge, bytes * 4 / 5, name);
    let paths: Vec<RepoPath> = forge.report.changed_files.iter().map(|file| file.path.clone()).collect();
    forge.report.changed_verification_files.clone_from(&paths);
    forge.report.changed_tests = paths;
    // Events would contradict the lists before they are compared.
    forge.files.remove(layout::EVENTS);
    forge
}

fn repeated_test(bytes: usize) -> Forge {
    let mut forge = base();
    files_like(&mut forge, bytes / 2, |at| format!("t/{at:06}"));
    let last = forge.report.changed_files.last().unwrap().path.clone();
    forge.report.changed_tests = vec![last; bytes / 2 / 20];
    forge.files.remove(layout::EVENTS);
    forge
}

/// As many gates that are missing as there are blockers.
fn missing_gates(bytes: usize) -> Forge {
    let mut forge = base();
    let mut decision: Value = serde_json::from_str(&forge.text(layout::DECISION)).unwrap();
    let gate =
        json!({ "gate": "target_clean", "blocker": "dirty_starting_tree", "reason": "", "next_step": "" });
    decision["missing_gates"] = Value::Array(vec![gate; bytes / 3 / 90]);
    forge.put(layout::DECISION, decision.to_string());
    let record = |blocker| BlockerRecord { blocker, detail: String::new(), next_step: String::new() };
    forge.report.blockers = vec![record(Blocker::NoDiff); bytes / 3 / 130];
    forge.report.blockers.push(record(Blocker::DirtyStartingTree));
    forge
}

fn many_reasons(bytes: usize) -> Forge {
    let mut forge = base();
    forge.report.not_applicable.extend((0..bytes / 34).map(|at| (format!("{at:06}"), String::new())));
    forge
}

fn violations(bytes: usize) -> Forge {
    let mut forge = base();
    let path = RepoPath::new("a").unwrap();
    let violation = PathViolation { path, rule: PathRule::Forbidden, detail: String::new() };
    forge.report.path_violations = vec![violation; bytes / 100];
    forge
}

/// Events of this kind before the last one, until they have about as many bytes.
fn events(bytes: usize, source: Source, kind: EventType, data: impl Fn(usize) -> Value) -> Forge {
    let mut forge = base();
    forge.events(|events| {
        let last = events.pop().unwrap();
        let each = 300 + data(1).to_string().len();
        let ts = events.last().unwrap().ts;
        for at in 0..bytes / each {
            let data: Map<String, Value> = data(at).as_object().unwrap().clone();
            events.push(Event { ts, source, kind, data, ..last.clone() });
        }
        events.push(last);
    });
    forge
}

fn agent_events(bytes: usize) -> Forge {
    let text = "what an agent says of what it does next, and why it does that before it does anything else";
    events(bytes, Source::Agent, EventType::EngineMessage, |_| json!({ "text": text }))
}

fn harness_events(bytes: usize) -> Forge {
    events(bytes, Source::Harness, EventType::ToolEvaluated, |_| json!({}))
}

fn children(bytes: usize) -> Forge {
    let child = |at: usize| json!({ "child": format!("01890a5d-ac96-774b-bcce-b302{at:08x}") });
    events(bytes, Source::Harness, EventType::ToolEvaluated, child)
}

fn wide_events(bytes: usize) -> Forge {
    let keys: Map<String, Value> = (0..20_000).map(|at| (format!("{at:05x}"), json!(0))).collect();
    events(bytes, Source::Agent, EventType::EngineMessage, |_| Value::Object(keys.clone()))
}

fn long_events(bytes: usize) -> Forge {
    let list = vec![0; 100_000];
    events(bytes, Source::Agent, EventType::EngineMessage, |_| json!({ "a": list }))
}

fn deep_event(bytes: usize) -> Forge {
    let depth = bytes.min(250_000) / 2;
    with(layout::EVENTS, &format!("{{\"data\":{}{}\n", "[".repeat(depth), "]".repeat(depth)))
}

fn model_calls(bytes: usize) -> Forge {
    let mut forge = base();
    let mut chain = Chain::new(&forge.report.run_id.to_string());
    let (mut log, mut number) = (Vec::new(), 0);
    while log.len() < bytes {
        let mut line = Vec::new();
        let placed = chain.place(Some(number), call(), &mut line).unwrap();
        chain.go_on(&placed, &line);
        number += 1;
        log.extend_from_slice(&line);
        log.push(b'\n');
    }
    forge.report.not_applicable.remove(layout::MODEL_CALLS);
    forge.put(layout::MODEL_CALLS, log);
    forge
}

fn call() -> Unchained {
    Unchained {
        answered: None,
        asked: "m".to_owned(),
        attempts: Vec::new(),
        charged: Charge::default(),
        endpoint: Endpoint::Chat,
        ended: Ended::Answered,
        first_byte_us: None,
        latency_us: 1,
        reason: None,
        request: Digest::of(b"request"),
        response: None,
        rewrites: Vec::new(),
        settled: true,
        status: 200,
        stop: None,
        stream: false,
        time: "2026-11-18T09:27:43Z".parse().unwrap(),
        tool_calls: 0,
        used: None,
    }
}

fn long_line(bytes: usize) -> Forge {
    let mut forge = allowing(&["**".to_owned()]);
    let content = format!("{}\n", "a".repeat(bytes));
    let (none, id) = ("0".repeat(40), blob(content.as_bytes()));
    let header =
        format!("diff --git a/s2 b/s2\nnew file mode 100644\nindex {none}..{id}\n--- /dev/null\n+++ b/s2\n");
    let patch = format!("{}{header}@@ -0,0 +1 @@\n+{content}", forge.text(layout::PATCH));
    // The order of the names is that of the report.
    forge.put(layout::PATCH, patch);
    forge.report.changed_files.insert(0, added("s2", &id));
    forge.count_changes();
    forge
}
