//! C and C++ projects, and others whose tests a build tool starts.

use super::{Part, RepositoryFiles};

pub(super) fn cmake(files: &RepositoryFiles) -> Option<Part> {
    files.has("CMakeLists.txt").then(|| Part {
        tools: ["cmake", "make", "gcc"].map(ToOwned::to_owned).to_vec(),
        verify: [
            "cmake -S . -B build",
            "cmake --build build --parallel 4",
            "ctest --test-dir build --output-on-failure",
        ]
        .map(ToOwned::to_owned)
        .to_vec(),
        reasons: vec!["`CMakeLists.txt` makes this a CMake project, whose tests ctest runs".to_owned()],
        allowed_paths: vec!["CMakeLists.txt".to_owned()],
        ..Part::default()
    })
}

pub(super) fn autotools(files: &RepositoryFiles) -> Option<Part> {
    let (script, prepare) = match files.first(&["configure", "configure.ac"])? {
        "configure" => ("configure", "./configure"),
        other => (other, "autoreconf --install && ./configure"),
    };
    Some(Part {
        tools: ["make", "gcc"].map(ToOwned::to_owned).to_vec(),
        verify: vec![prepare.to_owned(), "make".to_owned(), "make check".to_owned()],
        reasons: vec![format!("`{script}` makes this an autotools project, whose tests `make check` runs")],
        ..Part::default()
    })
}

pub(super) fn make(files: &RepositoryFiles) -> Option<Part> {
    let name = files.first(&["Makefile", "makefile", "GNUmakefile"])?;
    let text = files.read(name)?;
    let has = |target: &str| {
        text.lines()
            .any(|line| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    let target = ["test", "check", "tests"].into_iter().find(|target| has(target))?;
    Some(Part {
        tools: ["make", "gcc"].map(ToOwned::to_owned).to_vec(),
        verify: vec![format!("make {target}")],
        reasons: vec![format!("`{name}` has the target `{target}`")],
        ..Part::default()
    })
}
