//! Text of people in shell commands.

/// A word that the shell takes as it is.
pub(super) fn quoted(word: &str) -> String {
    let plain = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b'=' | b',' | b':' | b'@')
    };
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words in one line.
pub(super) fn quoted_all<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A command that makes empty files, for tools that refuse a manifest whose source files are missing.
pub(super) fn placeholders<'a>(paths: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names = quoted_all(paths);
    let make = "do mkdir -p \"$(dirname \"$f\")\" && : > \"$f\"; done";
    (!names.is_empty()).then(|| format!("for f in {names}; {make}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_word_reaches_the_shell() {
        assert_eq!(quoted("pytest"), "pytest");
        assert_eq!(quoted("pytest>=8; touch x"), "'pytest>=8; touch x'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
