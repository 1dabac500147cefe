//! Takes out of a transcript what is another one each time. Both the page and the real output go through it.

use std::path::Path;

use regex::Regex;

/// Values that differ each time, and their placeholders.
const FILTERS: &[(&str, &str, &str)] = &[
    ("a run's name", r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[RUN]"),
    ("a digest", r"\bsha256:[0-9a-f]{64}\b", "[DIGEST]"),
    ("the name of a commit or tree", r"\b[0-9a-f]{40}\b", "[ID]"),
    ("a time", r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
    ("how long it took", r"\b\d+ ms\b", "[MS]"),
    ("a code that is printed with a record", r"\b(code +|--code )[0-9A-Za-z]{6}\b", "${1}[CODE]"),
    ("how long it took so far", r"^ *\d+\.\d\ds ", "[ELAPSED] "),
    ("bubblewrap's version", r"\bbubblewrap \d+(\.\d+)+", "bubblewrap [VERSION]"),
    ("a size in a table of files", r"\| \d+ \| \[DIGEST\]", "| [SIZE] | [DIGEST]"),
    // Last: eight digits are also the start of longer names.
    ("the last digits of a run's name", r"\b[0-9a-f]{8}\b", "[SHORT]"),
];

/// The filters, compiled.
pub(crate) struct Filters(Vec<(Regex, &'static str)>);

impl Filters {
    pub(crate) fn new() -> Self {
        Self(FILTERS.iter().map(|(_, regex, stands)| (Regex::new(regex).unwrap(), *stands)).collect())
    }

    /// The line without what is another one each time.
    pub(crate) fn line(&self, line: &str) -> String {
        let mut line = line.trim_end().to_owned();
        for (regex, stands) in &self.0 {
            line = regex.replace_all(&line, *stands).into_owned();
        }
        line
    }
}

/// Where a page's commands run, as the page shows it.
pub(crate) fn shown_places(text: &str, root: &Path) -> String {
    text.replace(root.to_str().unwrap(), "")
}

/// Whether the output is what the page shows. A line `...` on the page stands for any lines, also none; ` ...` at the
/// end of a line stands for the rest of it.
pub(crate) fn matches(page: &[String], output: &[String]) -> bool {
    match page {
        [] => output.is_empty(),
        [dots, rest @ ..] if dots == "..." => (0..=output.len()).any(|skip| matches(rest, &output[skip..])),
        [line, rest @ ..] => {
            output.first().is_some_and(|first| is(line, first)) && matches(rest, &output[1..])
        }
    }
}

fn is(page: &str, output: &str) -> bool {
    page.strip_suffix(" ...").map_or(page == output, |start| output.starts_with(start))
}

#[test]
fn only_what_changes_is_taken_out() {
    let filters = Filters::new();
    let digest = "sha256:e0b5710875582e39b5c6bf44090bd2f6718017e018199551f651c4142f4601df";
    for (line, left) in [
        ("pass  trim-slug  01a1e103-0531-7bf4-87af-2643f087f502", "pass  trim-slug  [RUN]"),
        ("herma show f087f502      the whole report", "herma show [SHORT]      the whole report"),
        (digest, "[DIGEST]"),
        ("  0.03s  starting", "[ELAPSED]  starting"),
        ("(exit 0, 36 ms)", "(exit 0, [MS])"),
        ("code      2YC0SF", "code      [CODE]"),
        ("if you mean it, add `--code 0a021e`", "if you mean it, add `--code [CODE]`"),
        ("herma approvals show --json", "herma approvals show --json"),
        ("fail  12 files, exit 1", "fail  12 files, exit 1"),
    ] {
        assert_eq!(filters.line(line), left);
    }
}

#[test]
fn dots_stand_for_any_lines_and_nothing_else_does() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (page, output, expected) in [
        ("a\n...\nc", "a\nb\nb\nc", true),
        ("a\n...", "a", true),
        ("a", "a\nb", false),
        ("a\nb", "a", false),
        ("...\nd", "a\nb", false),
        ("a", "b", false),
        ("a b ...", "a b c d", true),
        ("a b ...", "a c b", false),
    ] {
        assert_eq!(matches(&lines(page), &lines(output)), expected, "{page} / {output}");
    }
}
