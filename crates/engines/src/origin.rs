//! The registries that packages of agents come from, and the layout of a Python tree.

/// The registry that a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// npm's.
    Npm,
    /// `PyPI`. It has no package of the interpreter, so that of the machine is copied into the tree.
    PyPi {
        /// The versions of Python that it runs with.
        pythons: &'static [&'static str],
    },
}

impl Origin {
    /// The display name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi { .. } => "PyPI",
        }
    }

    /// One version of a package, in the registry's syntax.
    #[must_use]
    pub(crate) fn exactly(self, name: &str, version: &str) -> String {
        match self {
            Self::Npm => format!("{name}@{version}"),
            Self::PyPi { .. } => format!("{name}=={version}"),
        }
    }

    /// Whether this is a package name and nothing that the installer would take for an option, a path, a URL or an
    /// alias.
    #[must_use]
    pub fn is_name(self, text: &str) -> bool {
        let word = |text: &str| {
            let (first, last) = (text.bytes().next(), text.bytes().last());
            let ends = [first, last].iter().all(|byte| byte.is_some_and(|b| b.is_ascii_alphanumeric()));
            ends && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
        };
        let scoped = matches!(self, Self::Npm).then(|| text.strip_prefix('@')).flatten();
        let sound = match scoped {
            Some(rest) => rest.split_once('/').is_some_and(|(scope, name)| word(scope) && word(name)),
            None => word(text),
        };
        sound && !is_archive(text) && text.len() <= MAX_NAME_BYTES
    }

    /// Whether this is an exact version and no range, tag or URL: the requested version is the pinned one.
    #[must_use]
    pub fn is_exact(self, version: &str) -> bool {
        match self {
            Self::Npm => {
                let part = |text: &str| {
                    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                };
                let word = |text: &str| text.split('.').all(part) && !is_archive(text);
                let (numbers, rest) =
                    version.split_once('-').map_or((version, None), |(numbers, rest)| (numbers, Some(rest)));
                let parts: Vec<&str> = numbers.split('.').collect();
                parts.len() == 3
                    && parts.iter().all(|part| after_number(part) == Some(""))
                    && rest.is_none_or(word)
            }
            Self::PyPi { .. } => python_release(version).is_some_and(str::is_empty),
        }
    }
}

/// Whether npm would take it for a local file.
fn is_archive(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [".tgz", ".tar", ".tar.gz"].iter().any(|end| text.ends_with(end))
}

/// The rest after a number; `None` without one.
fn after_number(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..12).contains(&digits).then(|| text.split_at(digits).1)
}

/// The rest after a `PyPI` version: numbers, and pre- and post-release markers.
fn python_release(version: &str) -> Option<&str> {
    let mut rest = after_number(version)?;
    while let Some(after) = rest.strip_prefix('.').and_then(after_number) {
        rest = after;
    }
    for mark in ["a", "b", "rc", ".post", ".dev"] {
        rest = rest.strip_prefix(mark).and_then(after_number).unwrap_or(rest);
    }
    Some(rest)
}

/// The longest package name of a registry.
const MAX_NAME_BYTES: usize = 214;

/// The versions of Python whose interpreter is copied into a tree.
pub(crate) const PYTHONS: &[&str] = &["3.13", "3.12", "3.11"];

/// The paths of the Python packages and of the interpreter in a tree.
pub const PYTHON_PACKAGES: &str = "site";
/// See [`PYTHON_PACKAGES`].
pub const PYTHON_HOME: &str = "python";
/// The library directory of such an interpreter that has one.
pub(crate) const PYTHON_LIBRARY: &str = "python/lib";

#[cfg(test)]
mod tests {
    use super::*;

    const PYPI: Origin = Origin::PyPi { pythons: &[] };

    #[test]
    fn only_an_exact_version_is_one() {
        for good in ["0.166.0", "2.1.325", "1.0.0-rc.1"] {
            assert!(Origin::Npm.is_exact(good), "{good}");
        }
        for good in ["0.19.0", "2026", "2026.1", "1.0.0rc1", "1.2.3.4", "1.0a2.post1.dev3"] {
            assert!(PYPI.is_exact(good), "{good}");
        }
        for bad in [
            "",
            "latest",
            "^1.2.3",
            "1.2.3 || 2",
            "1.2.x",
            "1.2.*",
            "1.2.3-",
            "file:../x",
            "1.2.3@x",
            "-1.2.3",
            "1.2.3,<2",
            "1.2.3;x",
            ">=1.2.3",
            "1.2.3\n",
            "1.2.3-x.tgz",
            "1.2.3-x.TAR.gz",
            "1.2.3-..",
        ] {
            assert!(!Origin::Npm.is_exact(bad) && !PYPI.is_exact(bad), "{bad}");
        }
        assert!(!Origin::Npm.is_exact("1") && !Origin::Npm.is_exact("1.2") && !PYPI.is_exact("1.0.0-rc.1"));
    }

    #[test]
    fn a_name_is_nothing_that_would_be_taken_for_more() {
        for good in ["opencode-ai", "a", "socket.io", "under_score"] {
            assert!(Origin::Npm.is_name(good) && PYPI.is_name(good), "{good}");
        }
        assert!(Origin::Npm.is_name("@openai/codex") && !PYPI.is_name("@openai/codex"));
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "./x",
            "/x",
            "a/b",
            "@/x",
            "@x/",
            "@x/../y",
            "@../x",
            "@x",
            "-g",
            "--registry=x",
            ".hidden",
            "_x",
            "x.",
            "a@1",
            "a@npm:b",
            "npm:b",
            "git+ssh:x",
            "a b",
            "a[b]",
            "a==1",
            "a;b",
            "\u{e9}",
            "a\0",
            "a\n",
            &long,
        ] {
            assert!(!Origin::Npm.is_name(bad) && !PYPI.is_name(bad), "{bad}");
        }
    }
}
