//! Maven and Gradle projects.

use herma_core::environment::Registry;

use super::files::has_extension;
use super::shell::quoted;
use super::{Part, RepositoryFiles};

/// A test that makes surefire resolve its provider, which `dependency:go-offline` does not see.
const STUB: &str = "HermaStubTest";

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
        verify: vec!["mvn --batch-mode --offline --quiet test".to_owned()],
        cache: vec!["target".to_owned(), "**/target".to_owned()],
        reasons: vec!["`pom.xml` makes this a Maven project".to_owned()],
        ..Part::default()
    };
    part.fetch.push("mvn --batch-mode --quiet dependency:go-offline".to_owned());
    let stubs: Vec<String> = poms.iter().filter_map(|pom| stub(files, pom)).collect();
    if !stubs.is_empty() {
        let stubs = stubs.join(" && ");
        part.fetch.push(format!("{stubs} && mvn --batch-mode --quiet test && rm -rf target"));
        part.reasons.push(
            "an empty test fetches the parts of surefire that Maven resolves only when tests run".to_owned(),
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

/// A command that writes an empty test for a module that has tests.
fn stub(files: &RepositoryFiles, pom: &str) -> Option<String> {
    let dir = format!("{}src/test/java", pom.strip_suffix("pom.xml").unwrap_or_default());
    let tests: Vec<&str> = files.below(&dir).filter(|path| has_extension(path, &["java"])).collect();
    let text = tests.iter().take(50).filter_map(|path| files.read(path)).collect::<String>();
    let annotation = if text.contains("org.junit.jupiter") {
        "org.junit.jupiter.api.Test"
    } else if text.contains("org.testng") {
        "org.testng.annotations.Test"
    } else if text.contains("org.junit") {
        "org.junit.Test"
    } else {
        return None;
    };
    let content = format!("public class {STUB} {{ @{annotation} public void empty() {{}} }}");
    let dir = quoted(&dir);
    Some(format!("mkdir -p {dir} && echo {} > {dir}/{STUB}.java", quoted(&content)))
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
