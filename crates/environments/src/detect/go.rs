//! Go projects: modules are downloaded by go.mod alone.

use std::collections::BTreeSet;

use herma_core::environment::Registry;

use super::files::has_extension;
use super::{Part, RepositoryFiles};

/// Fills the build cache. Tests of the base that do not compile are reported by the preflight, with their output.
const COMPILE: &str = "go test -run '^$' ./... > /dev/null 2>&1 || true";

pub(super) fn detect(files: &RepositoryFiles) -> Option<Part> {
    let manifest = files.read("go.mod")?;
    let mut part = Part {
        tools: vec!["go".to_owned()],
        registries: vec![Registry::Go],
        setup: vec![COMPILE.to_owned()],
        verify: vec!["go test ./...".to_owned()],
        reasons: vec![
            "`go.mod` makes this a Go project".to_owned(),
            "setup compiles the packages once, so that later only those that changed are compiled".to_owned(),
        ],
        ..Part::default()
    };
    if files.has_below("vendor") {
        part.reasons.push("its modules are in `vendor`, so that nothing is fetched".to_owned());
    } else if manifest.contains("require") {
        part.fetch.push("go mod download".to_owned());
        part.reasons.push("go.mod requires modules, which `go mod download` fetches".to_owned());
    } else {
        part.reasons.push("go.mod requires no module".to_owned());
    }
    // Packages of a Go module can be in any directory.
    let dirs: BTreeSet<&str> = files
        .paths()
        .filter(|path| has_extension(path, &["go"]))
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    let dirs = dirs.into_iter().filter(|dir| *dir != "vendor" && *dir != "debian");
    part.allowed_paths.extend(dirs.map(|dir| format!("{dir}/**")));
    Some(part)
}
