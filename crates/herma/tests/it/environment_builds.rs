//! Builds of environments through the binary: what their commands can see, and two builds at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use herma_environments::tools::TOOLS;
use serde_json::{Value, json};

use crate::kit::{Herma, Started, fix_and};

/// Part of every credential.
const CANARY: &str = "canary-5d1f0c";

/// Credentials of package managers, in the forms that they read. Addresses with a credential are an error of their own.
const CREDENTIALS: [(&str, &str); 8] = [
    (".cargo/credentials.toml", "[registry]\ntoken = \"CANARY\"\n"),
    (".npmrc", "//npm.example/:_authToken=CANARY\n"),
    (
        ".m2/settings.xml",
        "<settings><servers><server><id>own</id><password>CANARY</password></server></servers></settings>\n",
    ),
    (".gradle/gradle.properties", "token=CANARY\n"),
    (".gradle/init.d/own.gradle", "// CANARY\n"),
    (".config/pip/pip.conf", "[global]\ntimeout = 10\n# CANARY\n"),
    (".netrc", "machine npm.example login me password CANARY\n"),
    (".pypirc", "[pypi]\npassword = CANARY\n"),
];

/// Looks for the canary in variables and in every file that a credential could be in, and fails if it is there.
const SPY: &str = r#"
import os, sys
canary = "canary-" + "5d1f0c"
seen = [name for name, value in os.environ.items() if canary in value]
for top in ["/home", "/root", "/tmp", "/workspace", "/engine", "/herma", "/etc", "/opt", "/usr/local/etc", USER]:
    for place, _, names in os.walk(top):
        for name in names:
            try: text = open(os.path.join(place, name), "rb").read(1 << 20)
            except OSError: continue
            if canary.encode() in text: seen.append(os.path.join(place, name))
print("seen:", seen)
sys.exit(len(seen))
"#;

/// A user's home with credentials, and a program for every tool of the table that is beside configuration with more of them.
fn with_credentials_and_tools(herma: &mut Herma) {
    for (path, text) in CREDENTIALS {
        herma.file(&format!("user/{path}"), text.replace("CANARY", CANARY));
    }
    let mut search_path = Vec::new();
    for row in TOOLS {
        let prefix = herma.at(&format!("user/opt/{}", row.name));
        for file in ["etc/npmrc", "conf/settings.xml", "pip.conf", "init.d/own.gradle"] {
            // A JDK needs its `conf`, and is refused with such a file in it.
            if row.name == "java" && file == "conf/settings.xml" {
                continue;
            }
            herma.file(&format!("user/opt/{}/{file}", row.name), CANARY);
        }
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *ersion*) echo v1.2.3;; *) echo '{}';; esac\n",
            prefix.display()
        );
        for program in row.programs {
            let file = herma.file(&format!("user/opt/{}/bin/{program}", row.name), &script);
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        search_path.push(prefix.join("bin").display().to_string());
    }
    search_path.push("/usr/bin:/bin".to_owned());
    herma.set("PATH", search_path.join(":"));
}

fn build(herma: &Herma, tools: &[&str]) -> (Option<i32>, String) {
    let user = json!(herma.at("user")).to_string();
    let spy = format!("/usr/bin/python3 -c '{}'", SPY.replace("USER", &user));
    let definition = json!({
        "tools": tools,
        "registries": ["npm", "pypi", "crates", "go", "maven"],
        "inputs": ["tests/**"],
        "fetch": [spy],
        "setup": [spy],
    });
    let contract = herma.contract(&[("environment", &definition.to_string())]);
    let ended = herma.run(&["env", "build", contract.to_str().unwrap()]);
    (ended.code, ended.stdout + &ended.stderr)
}

#[test]
fn no_command_of_a_build_sees_a_credential_whatever_tools_it_has() {
    let mut herma = Herma::new();
    with_credentials_and_tools(&mut herma);
    for row in TOOLS {
        let (code, said) = build(&herma, &[row.name]);
        assert_eq!(code, Some(0), "{}: {said}", row.name);
        assert!(!said.contains(CANARY), "{}: {said}", row.name);
    }
    // The same command finds what is there.
    herma.marked_home();
    herma.file("shown/notes.txt", CANARY);
    let shown = herma.at("shown");
    herma.settings(&format!("tools: {{ own: {{ path: /usr/bin/env, mounts: [{}] }} }}\n", shown.display()));
    let (code, said) = build(&herma, &["own"]);
    assert!(code != Some(0) && said.contains("notes.txt"), "{said}");
}

#[test]
fn two_builds_at_once_build_one_environment_once() {
    let herma = Herma::new();
    let terms = [("environment", "{ setup: [\"sleep 2; echo made > $HOME/dep\"] }")];
    let contract = herma.contract(&terms);
    let build = ["env", "build", contract.to_str().unwrap(), "--json"];
    // The first one makes the home.
    herma.run(&["env", "list"]);
    let started = [herma.start(&build), herma.start(&build)];
    let mut made = 0;
    for ended in started.map(Started::end) {
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        let layers: Value = serde_json::from_str(&ended.stdout).unwrap();
        let setup =
            layers["layers"].as_array().unwrap().iter().find(|layer| layer["kind"] == "setup").unwrap();
        made += usize::from(setup["reused"] == false);
    }
    assert_eq!(made, 1);
    herma.play(&fix_and(&[]), &terms).assert_pass();
    assert_eq!(herma.json(&["env", "list", "--json"])["layers"].as_array().unwrap().len(), 2);
}
