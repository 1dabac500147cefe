//! Reads a version out of the text that a program prints about itself.

/// The first version in a text: `go version go1.26.8`, `openjdk version "17.0.15"`, `v20.20.2`, `Python 3.11.7`.
pub(super) fn version_in(text: &str) -> Option<String> {
    text.split_whitespace().find_map(version_of)
}

fn version_of(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let word = word.strip_prefix("go").or_else(|| word.strip_prefix('v')).unwrap_or(word);
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let version = word.get(..end)?.trim_end_matches('.');
    let sound = version.starts_with(|c: char| c.is_ascii_digit());
    // A number alone is a version only as a whole word; `1m` is the start of a terminal's escape sequence.
    (sound && (version.contains('.') || version.len() == word.len())).then(|| version.to_owned())
}

/// The first number of a version; Java 8 calls itself 1.8.
pub(super) fn major(version: &str) -> &str {
    let rest = version.strip_prefix("1.").filter(|rest| !rest.is_empty()).unwrap_or(version);
    rest.split('.').next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (said, version) in [
            ("v20.20.2\n", "20.20.2"),
            ("Python 3.11.7", "3.11.7"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
            ("openjdk version \"17.0.15\" 2025-04-15", "17.0.15"),
            ("openjdk version \"21\" 2023-09-19", "21"),
            ("\u{1b}[1mApache Maven 3.8.7\u{1b}[m\nMaven home: /usr/share/maven", "3.8.7"),
            ("rustc 1.95.0 (abc 2026-03-21)", "1.95.0"),
            ("GNU Make 4.3\nBuilt for", "4.3"),
            ("ruby 3.1.2p20 (2022-04-12)", "3.1.2"),
            ("Poetry (version 1.8.3)", "1.8.3"),
            ("12.2.0\n", "12.2.0"),
            ("\n------\nGradle 8.5\n------\n", "8.5"),
        ] {
            assert_eq!(version_in(said).as_deref(), Some(version), "{said:?}");
        }
        assert_eq!(version_in("no version here"), None);
        assert_eq!((major("17.0.15"), major("1.8.0"), major("21")), ("17", "8", "21"));
    }
}
