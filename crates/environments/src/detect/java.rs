//! Maven and Gradle projects.

use std::collections::BTreeSet;

use herma_core::environment::Registry;

use super::files::has_extension;
use super::shell::{quoted, quoted_all};
use super::{Part, RepositoryFiles};

/// A test that makes surefire resolve its provider, which `dependency:go-offline` does not see.
const STUB: &str = "HermaStubTest";
/// Directories of a module that activate profiles and goals by being there.
const SOURCE_DIRS: [&str; 4] = ["src/main/java", "src/main/resources", "src/test/java", "src/test/resources"];
/// How many tests are read to find out which library they use.
const MAX_TESTS_READ: usize = 50;

pub(super) fn detect(files: &RepositoryFiles) -> Option<Part> {
    if files.has("pom.xml") {
        return Some(maven(files));
    }
    files.first(&["build.gradle", "build.gradle.kts"]).map(gradle)
}

fn maven(files: &RepositoryFiles) -> Part {
    let poms: Vec<&str> =
        files.paths().filter(|path| *path == "pom.xml" || path.ends_with("/pom.xml")).collect();
    let mut part = Part {
        tools: vec!["java".to_owned(), "maven".to_owned()],
        registries: vec![Registry::Maven],
        cache: vec!["target".to_owned(), "**/target".to_owned()],
        reasons: vec!["`pom.xml` makes this a Maven project".to_owned()],
        ..Part::default()
    };
    let mut skipped = "";
    if files.read("pom.xml").is_some_and(|text| checks_licenses(&text)) {
        skipped = " -Drat.skip";
        part.reasons.push(
            "Apache projects check every file for a license header, which a contract does not have: `-Drat.skip`".to_owned(),
        );
    }
    part.verify.push(format!("mvn --batch-mode --offline{skipped} test"));
    let stubs: Vec<String> = poms.iter().filter_map(|pom| stub(files, pom)).collect();
    if stubs.is_empty() {
        part.fetch.push("mvn --batch-mode --quiet dependency:go-offline".to_owned());
    } else {
        let outputs =
            poms.iter().map(|pom| format!("{}target", pom.strip_suffix("pom.xml").unwrap_or_default()));
        let outputs: Vec<String> = outputs.collect();
        let outputs = quoted_all(outputs.iter().map(String::as_str));
        let stubs = stubs.join(" && ");
        part.fetch.push(format!("{stubs} && mvn --batch-mode --quiet{skipped} test && rm -rf {outputs}"));
        part.reasons.push(
            "an empty test takes the place of the sources, so that Maven fetches all that running tests needs".to_owned(),
        );
    }
    for pom in poms {
        let dir = pom.strip_suffix("pom.xml").unwrap_or_default();
        if files.has_below(&format!("{dir}src")) {
            part.allowed_paths.push(format!("{dir}src/**"));
        }
    }
    part
}

/// Whether RAT, which Apache's parents bind to an early phase, looks at every file of the repository.
fn checks_licenses(pom: &str) -> bool {
    let parent = pom.split_once("<parent>").and_then(|(_, rest)| Some(rest.split_once("</parent>")?.0));
    let is_apache = parent.is_some_and(|parent| parent.contains("<groupId>org.apache"));
    pom.contains("apache-rat-plugin") || is_apache
}

/// A command that writes an empty test for a module that has tests, and makes the files and directories that activate profiles of a
/// parent.
fn stub(files: &RepositoryFiles, pom: &str) -> Option<String> {
    let module = pom.strip_suffix("pom.xml").unwrap_or_default();
    let dir = format!("{module}src/test/java");
    let tests: Vec<&str> = files.below(&dir).filter(|path| has_extension(path, &["java"])).collect();
    let text = tests.iter().take(MAX_TESTS_READ).filter_map(|path| files.read(path)).collect::<String>();
    let annotation = if text.contains("org.junit.jupiter") {
        "org.junit.jupiter.api.Test"
    } else if text.contains("org.testng") {
        "org.testng.annotations.Test"
    } else if text.contains("org.junit") {
        "org.junit.Test"
    } else {
        return None;
    };
    let mut dirs: BTreeSet<String> = BTreeSet::from([dir.clone()]);
    let usual = SOURCE_DIRS.iter().map(|each| format!("{module}{each}"));
    dirs.extend(usual.filter(|each| files.has_below(each)));
    let is_profile = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("profile."));
    let sources = format!("{module}src");
    let profiles: Vec<&str> = files.below(&sources).filter(is_profile).collect();
    dirs.extend(profiles.iter().filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())));
    let dirs = quoted_all(dirs.iter().map(String::as_str));
    let profiles: Vec<String> = profiles.iter().map(|path| format!(" && : > {}", quoted(path))).collect();
    let profiles = profiles.concat();
    let content = format!("public class {STUB} {{ @{annotation} public void empty() {{}} }}");
    Some(format!("mkdir -p {dirs}{profiles} && echo {} > {}/{STUB}.java", quoted(&content), quoted(&dir)))
}

fn gradle(manifest: &str) -> Part {
    Part {
        tools: vec!["java".to_owned(), "gradle".to_owned()],
        registries: vec![Registry::Maven],
        fetch: vec!["gradle --no-daemon --quiet dependencies".to_owned()],
        verify: vec!["gradle --no-daemon --offline test".to_owned()],
        cache: vec!["build".to_owned(), ".gradle".to_owned()],
        reasons: vec![format!("`{manifest}` makes this a Gradle project")],
        questions: vec![
            "Gradle resolves some packages only when tests run: if they are missing, use `inputs: [\"**\"]`"
                .to_owned(),
        ],
        ..Part::default()
    }
}
