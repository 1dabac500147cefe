//! Rust projects: crates are downloaded with the manifests alone, and compiled without network.

use std::collections::BTreeSet;

use herma_core::environment::Registry;

use super::shell::placeholders;
use super::{Part, RepositoryFiles};

/// Targets that cargo finds by their place.
const USUAL_TARGETS: [&str; 3] = ["src/lib.rs", "src/main.rs", "build.rs"];
/// Tables of targets, and the directory of those that name no path.
const TARGET_TABLES: [(&str, &str); 4] =
    [("bin", "src/bin"), ("test", "tests"), ("bench", "benches"), ("example", "examples")];

/// Compiles the dependencies. A base that does not compile is reported by the preflight, with the output of the compiler.
const COMPILE: &str = "cargo test --offline --no-run --quiet 2> /dev/null || true";

pub(super) fn detect(files: &RepositoryFiles) -> Option<Part> {
    if !files.has("Cargo.toml") {
        return None;
    }
    let manifests = files.paths().filter(|path| *path == "Cargo.toml" || path.ends_with("/Cargo.toml"));
    let targets: BTreeSet<String> = manifests.flat_map(|manifest| targets(files, manifest)).collect();
    let mut part = Part {
        tools: vec!["rust".to_owned(), "gcc".to_owned()],
        registries: vec![Registry::Crates],
        setup: vec![COMPILE.to_owned()],
        verify: vec!["cargo test --offline".to_owned()],
        reasons: vec![
            "`Cargo.toml` makes this a Rust project".to_owned(),
            "setup compiles the dependencies once".to_owned(),
            "cargo reads no manifest without its source files, so that empty ones take their place while crates are downloaded"
                .to_owned(),
        ],
        ..Part::default()
    };
    let locked = if files.has("Cargo.lock") { " --locked" } else { "" };
    let fetch = format!("cargo fetch{locked}");
    let placeholders = placeholders(targets.iter().map(String::as_str));
    part.fetch.push(placeholders.map_or(fetch.clone(), |make| format!("{make}; {fetch}")));
    part.cache.push("target".to_owned());
    if let Some(pin) = files.first(&["rust-toolchain.toml", "rust-toolchain"]) {
        part.questions.push(format!(
            "`{pin}` names a toolchain; write it as `rust@VERSION` if the tests need exactly that"
        ));
    }
    Some(part)
}

/// The source files that a manifest needs so that cargo reads it.
fn targets(files: &RepositoryFiles, manifest: &str) -> Vec<String> {
    let dir = manifest.strip_suffix("Cargo.toml").unwrap_or_default();
    let table = files.read(manifest).and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
    let mut found: Vec<String> = USUAL_TARGETS.iter().map(|path| format!("{dir}{path}")).collect();
    let lib = table.get("lib").and_then(|lib| lib.get("path")).and_then(toml::Value::as_str);
    found.extend(lib.map(|path| format!("{dir}{path}")));
    for (kind, usual) in TARGET_TABLES {
        for target in table.get(kind).and_then(toml::Value::as_array).into_iter().flatten() {
            let text = |key: &str| target.get(key).and_then(toml::Value::as_str);
            match (text("path"), text("name")) {
                (Some(path), _) => found.push(format!("{dir}{path}")),
                (None, Some(name)) => {
                    found.extend([format!("{dir}{usual}/{name}.rs"), format!("{dir}{usual}/{name}/main.rs")]);
                }
                (None, None) => {}
            }
        }
    }
    found.retain(|path| files.has(path));
    found
}
