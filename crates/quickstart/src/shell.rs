//! Commands as a person can paste them into a shell.

/// A word, quoted where a shell would read it otherwise.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '=' | '@' | '+')
    };
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_word_for_a_shell() {
        for (text, quoted) in [
            ("claude", "claude"),
            ("/opt/a-b/c.d", "/opt/a-b/c.d"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("~", "'~'"),
        ] {
            assert_eq!(word(text), quoted);
        }
    }
}
