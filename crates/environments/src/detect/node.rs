//! Node projects: packages without their lifecycle scripts, which run afterwards without network.

use herma_core::environment::Registry;
use serde_json::Value;

use super::{Part, RepositoryFiles};

/// A package manager: its lock file, how it fetches with and without one, and how it runs the tests.
struct Manager {
    name: &'static str,
    lock: &'static [&'static str],
    locked: &'static str,
    unlocked: &'static str,
    rebuild: &'static str,
    test: &'static str,
}

const MANAGERS: [Manager; 4] = [
    Manager {
        name: "pnpm",
        lock: &["pnpm-lock.yaml"],
        locked: "pnpm install --frozen-lockfile --ignore-scripts",
        unlocked: "pnpm install --no-lockfile --ignore-scripts",
        rebuild: "pnpm rebuild",
        test: "pnpm test",
    },
    Manager {
        name: "yarn",
        lock: &["yarn.lock"],
        locked: "yarn install --frozen-lockfile --ignore-scripts",
        unlocked: "yarn install --no-lockfile --ignore-scripts",
        rebuild: "npm rebuild",
        test: "yarn test",
    },
    Manager {
        name: "bun",
        lock: &["bun.lock", "bun.lockb"],
        locked: "bun install --frozen-lockfile --ignore-scripts",
        unlocked: "bun install --ignore-scripts",
        rebuild: "npm rebuild",
        test: "bun run test",
    },
    Manager {
        name: "npm",
        lock: &["package-lock.json", "npm-shrinkwrap.json"],
        locked: "npm ci --ignore-scripts --no-audit --no-fund",
        unlocked: "npm install --ignore-scripts --no-package-lock --no-audit --no-fund",
        rebuild: "npm rebuild",
        test: "npm test",
    },
];

/// The script that `npm init` writes.
const NO_TESTS: &str = "no test specified";

pub(super) fn detect(files: &RepositoryFiles) -> Option<Part> {
    let manifest: Value = serde_json::from_str(&files.read("package.json")?).ok()?;
    let locked = MANAGERS.iter().find(|manager| files.first(manager.lock).is_some());
    let [.., npm] = &MANAGERS;
    let manager = locked.unwrap_or(npm);
    let mut part = Part {
        tools: vec![node_tool(files), manager.name.to_owned()],
        registries: vec![Registry::Npm],
        reasons: vec!["`package.json` makes this a Node project".to_owned()],
        cache: vec!["node_modules".to_owned(), "**/node_modules".to_owned()],
        ..Part::default()
    };
    let has_packages =
        ["dependencies", "devDependencies", "workspaces"].iter().any(|key| manifest.get(key).is_some());
    match locked.and_then(|manager| files.first(manager.lock)) {
        Some(lock) => {
            part.reasons.push(format!("`{lock}` names the packages; {} installs them", manager.name));
            part.fetch.push(manager.locked.to_owned());
            // Only packages with install scripts need a second step.
            if files
                .read(lock)
                .is_some_and(|text| text.contains("hasInstallScript") || text.contains("requiresBuild"))
            {
                part.setup.push(manager.rebuild.to_owned());
                part.setup_on_inputs = true;
                part.reasons.push("some packages have install scripts, which run without network".to_owned());
            }
        }
        None if has_packages => {
            part.fetch.push(manager.unlocked.to_owned());
            part.questions.push("there is no lock file: a later build may get other versions".to_owned());
        }
        None => {}
    }
    let test = manifest.get("scripts").and_then(|scripts| scripts.get("test")).and_then(Value::as_str);
    if let Some(script) = test.filter(|script| !script.contains(NO_TESTS)) {
        part.verify.push(manager.test.to_owned());
        part.reasons.push(format!("the script `test` of package.json is `{script}`"));
    }
    for dir in manifest.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        let dir = dir.trim_matches('/');
        if files.has_below(dir) && !dir.contains('*') && !matches!(dir, "dist" | "build") {
            part.allowed_paths.push(format!("{dir}/**"));
        }
    }
    Some(part)
}

/// Node, with the version that `.nvmrc` names.
fn node_tool(files: &RepositoryFiles) -> String {
    let pinned = [".nvmrc", ".node-version"].iter().find_map(|path| files.read(path));
    let pinned = pinned
        .as_deref()
        .map(|text| text.trim().trim_start_matches('v').split('.').next().unwrap_or_default().to_owned());
    let is_number = |text: &String| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    pinned.filter(is_number).map_or("node".to_owned(), |version| format!("node@{version}"))
}
