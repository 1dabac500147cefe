//! The working directory of the client, from its prompt. Some tools need absolute paths, and a script has relative ones.

/// The text before the directory in the prompts of known agents.
const LEADS: [&str; 5] = [
    "Primary working directory: ",
    "Current working directory: ",
    "Working directory: ",
    "working in the directory: ",
    "<cwd>",
];

/// `path` below the client's directory, where it is relative and the conversation names one.
pub(super) fn absolute(path: &str, conversation: &str) -> String {
    match of(conversation) {
        Some(directory) if !path.starts_with('/') => {
            format!("{}/{}", directory.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path))
        }
        _ => path.to_owned(),
    }
}

fn of(conversation: &str) -> Option<&str> {
    LEADS.iter().find_map(|lead| {
        let (_, rest) = conversation.split_once(lead)?;
        let directory = rest.split(['\n', '\r', '<']).next()?.trim();
        directory.starts_with('/').then_some(directory)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_becomes_absolute_where_the_prompt_says_where_it_works() {
        assert_eq!(absolute("src/a.rs", "<env>\n  Working directory: /srv/x\n</env>"), "/srv/x/src/a.rs");
        assert_eq!(absolute("./a", "<cwd>/srv/x/</cwd>"), "/srv/x/a");
        assert_eq!(absolute("/etc/a", "Working directory: /srv/x"), "/etc/a");
        assert_eq!(absolute("../a", "Working directory: /srv/x"), "/srv/x/../a");
        assert_eq!(absolute("a", "Working directory: unknown"), "a");
        assert_eq!(absolute("a", ""), "a");
    }
}
