//! The real agents, installed from their registry, driven by scripts in the place of a model: they earn their stages, and
//! whatever they are made to do ends as what it is.

mod acp;
mod adding;
mod climbing;
mod comparing;
mod first_page;
mod first_run;
mod gone;
mod governing;
mod home;
mod hook_cost;
mod overhead;
mod projects;
mod resuming;
mod rows;
mod transcribing;
mod watched;

use std::fs;

use herma_core::EventType;
use herma_engines::{Package, claude, codex, hermes, opencode, pi};

use self::rows::{ROWS, Row};
use self::watched::Watched;
use crate::kit::{Ended, Finished, Herma, Repository, everything_below, processes_of};

/// Canaries that nobody inside may read and no bundle may contain.
const CANARY: &str = "canary-6f1d-of-the-user";

/// Where agents keep the user's own settings, keys and sessions.
const OWN_FILES: &[&str] = &[
    ".codex/config.toml",
    ".codex/auth.json",
    ".claude/settings.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".config/opencode/opencode.json",
    ".local/share/opencode/auth.json",
    ".pi/agent/settings.json",
    ".pi/agent/auth.json",
    ".hermes/config.yaml",
    ".hermes/.env",
];

/// Each row is played by one of the first two here, and by every agent in the long command.
#[test]
fn codex_gets_to_the_top_and_whatever_it_is_made_to_do_ends_as_what_it_is() {
    to_the_top(codex::NAME, &codex::PACKAGE, |at| at % 2 == 0);
}

#[test]
fn claude_gets_to_the_top_and_whatever_it_is_made_to_do_ends_as_what_it_is() {
    in_one_home(claude::NAME, &claude::PACKAGE, |herma| {
        the_ladder(herma, claude::NAME, |at| at % 2 == 1);
        projects::quick_page_and_a_landing(herma, claude::NAME);
    });
}

#[test]
fn opencode_earns_three_stages() {
    three_stages(opencode::NAME, &opencode::PACKAGE);
}

#[test]
fn pi_earns_three_stages() {
    three_stages(pi::NAME, &pi::PACKAGE);
}

#[test]
fn hermes_earns_three_stages() {
    three_stages(hermes::NAME, &hermes::PACKAGE);
}

#[test]
fn every_stage_and_every_row_holds_for_codex() {
    to_the_top(codex::NAME, &codex::PACKAGE, |_| true);
}

#[test]
fn every_stage_and_every_row_holds_for_claude() {
    to_the_top(claude::NAME, &claude::PACKAGE, |_| true);
}

#[test]
fn every_stage_and_every_row_holds_for_opencode() {
    to_the_top(opencode::NAME, &opencode::PACKAGE, |_| true);
}

#[test]
fn every_stage_and_every_row_holds_for_pi() {
    to_the_top(pi::NAME, &pi::PACKAGE, |_| true);
}

#[test]
fn every_stage_and_every_row_holds_for_hermes() {
    to_the_top(hermes::NAME, &hermes::PACKAGE, |_| true);
}

/// Every stage of the ladder, and these rows.
fn to_the_top(engine: &str, package: &Package, which: impl Fn(usize) -> bool) {
    in_one_home(engine, package, |herma| the_ladder(herma, engine, &which));
}

fn the_ladder(herma: &Herma, engine: &str, which: impl Fn(usize) -> bool) {
    climbing::proves_five_stages(herma, engine);
    herma.with_rehearsal();
    let mut wrong = Vec::new();
    for (_, row) in ROWS.iter().enumerate().filter(|(at, _)| which(*at)) {
        wrong.extend(row.differs(&play(herma, engine, row)));
    }
    assert!(wrong.is_empty(), "{engine}:\n{}", wrong.join("\n"));
    climbing::lands_and_is_a_candidate(herma, engine);
}

/// The first three stages, and no row.
fn three_stages(engine: &str, package: &Package) {
    in_one_home(engine, package, |herma| {
        let proven = herma.run_patiently(&["prove", "--engine", engine, "--up-to", "3", "--json"]);
        assert_eq!(proven.code, Some(0), "{proven:#?}");
        herma.with_rehearsal();
    });
}

/// One home for all of it: the agent is large, and every command takes its digest.
fn in_one_home(engine: &str, package: &Package, earn: impl Fn(&Herma)) {
    let herma = Herma::with_agent(engine, package);
    for path in [OWN_FILES, &["canary"]].concat() {
        herma.file(&format!("user/{path}"), CANARY);
    }
    let users = everything_below(&herma.at("user"));
    let own = Watched::files(&herma.at("user"), OWN_FILES);
    earn(&herma);
    governing::a_denied_call_is_not_made_and_the_model_gets_the_denial(&herma, engine);
    resuming::it_goes_on_where_it_stopped(&herma, engine);
    a_project_brings_nothing_that_is_run(&herma, engine);
    // Where the agents of the user keep their own, nobody looked, and nothing was written.
    assert_eq!(own.touched(), [""; 0]);
    assert_eq!(everything_below(&herma.at("user")), users);
}

/// Plays one row.
fn play(herma: &Herma, engine: &str, row: &Row) -> Finished {
    if row.model_goes {
        return gone::play(herma, engine, row);
    }
    play_script(herma, engine, row.name, &row.script())
}

fn play_script(herma: &Herma, engine: &str, name: &str, script: &str) -> Finished {
    let place = |text: &str| text.replace("CANARY", herma.at("user/canary").to_str().unwrap());
    fs::write(herma.home().join("case.yaml"), place(script)).unwrap();
    let contract =
        herma.contract(&[("model", "{ provider: rehearsal, model: m }"), ("limits", rows::LIMITS)]);
    let args = ["run", contract.to_str().unwrap(), "--engine", engine, "--json"];
    looked_at(herma, name, || herma.run_patiently(&args))
}

/// Looks at what must hold for every run, whatever was done in it. The bundle is verified on the way.
fn looked_at(herma: &Herma, name: &str, run: impl FnOnce() -> Ended) -> Finished {
    let finished = herma.finished_by(run);
    let run = finished.report.run_id;
    assert_eq!(processes_of(run), [0_u32; 0], "{name}: something is left");
    for (file, (_, bytes)) in everything_below(&finished.bundle.dir) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(CANARY), "{}: {} holds the canary", name, file.display());
    }
    finished
}

/// Settings, hooks and servers in the workspace would leave a file there that the contract does not allow.
fn a_project_brings_nothing_that_is_run(herma: &Herma, engine: &str) {
    let repository = Repository::of_fixture(herma, "string-slugify");
    let hook = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch /workspace/ran"}]}],
        "PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"touch /workspace/ran"}]}]}}"#;
    let server = r#"{"mcpServers":{"x":{"command":"/bin/sh","args":["-c","touch /workspace/ran"]}}}"#;
    let settings = "model = \"another\"\n[mcp_servers.x]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"touch /workspace/ran\"]\n";
    for (path, text) in [
        (".claude/settings.json", hook),
        (".claude/settings.local.json", hook),
        (".mcp.json", server),
        (".codex/config.toml", settings),
        (".codex/hooks.json", hook),
        (
            "opencode.json",
            r#"{"mcp":{"x":{"type":"local","command":["/bin/sh","-c","touch /workspace/ran"]}}}"#,
        ),
        (".opencode/plugins/x.js", "require('fs').writeFileSync('/workspace/ran', '')\n"),
        (".pi/extensions/x.ts", "require('fs').writeFileSync('/workspace/ran', '')\n"),
        (".hermes/plugins/x/plugin.yaml", "name: x\n"),
        (".hermes/plugins/x/__init__.py", "open('/workspace/ran', 'w')\ndef register(_): pass\n"),
        (".hermes/config.yaml", "hooks: { pre_tool_call: [{ command: touch /workspace/ran }] }\n"),
        // Modules that an interpreter would take for its own, if it looked where it stands.
        ("sitecustomize.py", "open('/workspace/ran', 'w')\n"),
        ("run_agent.py", "open('/workspace/ran', 'w')\n"),
    ] {
        let path = repository.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    repository.commit("what a project may bring");
    fs::write(herma.home().join("case.yaml"), rows::FIXES.script()).unwrap();
    let contract = herma.contract(&[
        ("model", "{ provider: rehearsal, model: m }"),
        ("target", "{ repo: ../repo }"),
        ("stage", "3"),
        ("limits", rows::LIMITS),
    ]);
    let args = ["run", contract.to_str().unwrap(), "--engine", engine, "--json"];
    let finished = herma.finished_by(|| herma.run_patiently(&args));
    finished.assert_pass();
    assert_eq!(finished.changed(), ["slugify.sh"]);
    governing::reconcile(&finished, engine);
    assert!(finished.bundle.has_event(EventType::EngineMessage));
    // Its calls are shown: the tool with which it wrote, and its model.
    let shown = herma.run(&["show", "--full"]).stdout;
    for called in ["    tool    ", "slugify.sh", "    model   m  200  "] {
        assert!(shown.contains(called), "{shown}");
    }
    transcribing::it_reads(herma, &["slugify.sh", "agent    It is done."]);
    resuming::it_does_not_go_on_from_another_base(herma, &repository);
}
