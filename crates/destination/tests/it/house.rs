//! The test switches exist in this crate's tests only.

use std::fs;
use std::path::Path;

#[test]
fn no_other_crate_asks_for_the_switches() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let asks = |dir: &Path| {
        fs::read_to_string(dir.join("Cargo.toml")).is_ok_and(|text| text.contains("test-switches"))
    };
    let asking: Vec<String> = fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| asks(&entry.path()))
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(asking, ["destination"]);
    let own = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let (build, tests) = own.split_once("[dev-dependencies]").unwrap();
    assert!(build.contains("test-switches = []") && !build.contains("default ="), "{build}");
    assert!(tests.contains("test-switches"));
    let docker = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docker.rs")).unwrap();
    assert!(docker.contains("#[cfg(feature = \"test-switches\")]\nmod test_switches;\n"));
}
