//! Shows a transcript: one block for each entry, with its time and its kind. Every line of the agent's text is indented and
//! wrapped, so that it cannot imitate an entry.

use herma_core::Timestamp;
use herma_core::transcript::{TranscriptEntry, TranscriptLine};
use textwrap::Options;

use crate::screen::{Screen, Tone, safe, safe_line};

/// The columns before the text: time and kind.
const INDENT: usize = 19;
/// The columns of a narrow terminal, where the text begins below the time and the kind.
const NARROW: usize = 60;
/// The start of such a line: with blanks alone it could begin like an entry.
const NARROW_MARGIN: &str = "| ";
/// The fewest columns of text.
const MIN_TEXT: usize = 20;
/// The longest name of a tool that is shown as the kind of its calls.
const MAX_KIND: usize = 8;
/// The kinds of other entries: a tool of such a name would make its calls look like herma's own words.
const KINDS: [&str; 10] =
    ["agent", "thinks", "failed", "edit", "plan", "tokens", "error", "output", "denied", "tool"];
/// The lines that are shown of a result and of an edit.
const RESULT_LINES: usize = 8;
const EDIT_LINES: usize = 20;

/// Shows the entries of one run.
pub(crate) struct TranscriptView<'a> {
    screen: &'a Screen,
    started_at: Timestamp,
    /// Whether results and edits are shown whole.
    full: bool,
    /// The start of each line.
    prefix: String,
}

/// A block of the view.
struct Block {
    kind: String,
    tone: Option<Tone>,
    lines: Vec<(Option<Tone>, String)>,
}

impl<'a> TranscriptView<'a> {
    pub(crate) fn new(screen: &'a Screen, started_at: Timestamp, full: bool) -> Self {
        Self { screen, started_at, full, prefix: String::new() }
    }

    /// The same with each line after this prefix.
    pub(crate) fn with_prefix(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// Prints an entry.
    pub(crate) fn print(&self, line: &TranscriptLine) {
        for text in self.lines(line) {
            self.screen.line(format_args!("{}{text}", self.prefix));
        }
    }

    fn lines(&self, line: &TranscriptLine) -> Vec<String> {
        let Block { kind, tone, lines } = self.block(&line.entry);
        let elapsed = line.ts.duration_since(self.started_at).as_secs_f64();
        let head = format!("{elapsed:7.2}s  {kind:<8}");
        let head = tone.map_or_else(|| head.clone(), |tone| self.screen.paint(tone, &head));
        let columns = self.screen.columns().map(|columns| columns.saturating_sub(self.prefix.len()));
        let narrow = columns.is_some_and(|columns| columns < NARROW);
        let margin = if narrow { NARROW_MARGIN.to_owned() } else { " ".repeat(INDENT) };
        let width = columns.map_or(usize::MAX, |columns| columns.saturating_sub(margin.len()).max(MIN_TEXT));
        let mut texts = lines.into_iter().flat_map(|(tone, text)| {
            let paint = move |part: &str| match tone {
                Some(tone) => self.screen.paint(tone, part),
                None => part.to_owned(),
            };
            wrapped(&text, width).iter().map(|part| paint(part)).collect::<Vec<_>>()
        });
        let first = if narrow { None } else { texts.next() };
        let mut shown = vec![match first {
            Some(first) => format!("{head} {first}"),
            None => head,
        }];
        shown.extend(texts.map(|text| format!("{margin}{text}")));
        shown.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn block(&self, entry: &TranscriptEntry) -> Block {
        match entry {
            TranscriptEntry::Message { text } => block("agent", Some(Tone::Bold), all(text)),
            TranscriptEntry::Reasoning { text } => {
                block("thinks", Some(Tone::Dim), dim(self.cut(text, RESULT_LINES)))
            }
            TranscriptEntry::ToolCall { tool, arguments, .. } => {
                let tool = safe_line(tool);
                // Another name is part of the text.
                let (kind, text) = match tool.as_str() {
                    name if is_kind(name) => (name.to_owned(), arguments.clone()),
                    name => ("tool".to_owned(), format!("{name}  {arguments}")),
                };
                block(&kind, Some(Tone::Good), self.cut(&text, RESULT_LINES))
            }
            TranscriptEntry::ToolResult { output, failed, .. } => {
                let kind = if *failed { "failed" } else { "" };
                let text = if output.is_empty() { "(no output)" } else { output };
                block(kind, failed.then_some(Tone::Warn), dim(self.cut(text, RESULT_LINES)))
            }
            TranscriptEntry::Edit { path, removed, added, .. } => {
                let mut lines = all(path);
                let mut changes: Vec<(Option<Tone>, String)> = Vec::new();
                for (sign, tone, text) in [("-", Tone::Bad, removed), ("+", Tone::Good, added)] {
                    let text = text.as_deref().unwrap_or_default();
                    changes.extend(text.lines().map(|line| (Some(tone), format!("{sign} {}", safe(line)))));
                }
                lines.extend(self.limit(changes, EDIT_LINES));
                block("edit", Some(Tone::Good), lines)
            }
            TranscriptEntry::Plan { items } => {
                let items = items.iter().map(|item| (None, format!("- {}", safe_line(item)))).collect();
                block("plan", Some(Tone::Bold), self.limit(items, EDIT_LINES))
            }
            TranscriptEntry::Usage { input_tokens, output_tokens } => {
                let text = format!("{input_tokens} in, {output_tokens} out, as the agent reports");
                block("tokens", Some(Tone::Dim), dim(all(&text)))
            }
            TranscriptEntry::Error { text } => block("error", Some(Tone::Bad), self.cut(text, RESULT_LINES)),
            TranscriptEntry::Output { text } => {
                block("output", Some(Tone::Dim), self.cut(text, RESULT_LINES))
            }
            TranscriptEntry::Denial { tool, arguments, reason } => {
                let text = format!("{}  {}", safe_line(tool), safe_line(arguments));
                let mut lines = all(&text);
                lines.extend(all(&format!("denied by herma: {reason}")));
                block("DENIED", Some(Tone::Bad), lines)
            }
            TranscriptEntry::LeftOut {} => {
                let text = "the transcript has reached its maximum size; `herma logs --raw` has the output";
                block("", None, dim(all(text)))
            }
        }
    }

    fn cut(&self, text: &str, most: usize) -> Vec<(Option<Tone>, String)> {
        self.limit(all(text), most)
    }

    fn limit(&self, mut lines: Vec<(Option<Tone>, String)>, most: usize) -> Vec<(Option<Tone>, String)> {
        // One line more says no less than a note about it.
        if !self.full && lines.len() > most + 1 {
            let more = lines.len() - most;
            lines.truncate(most);
            lines.push((Some(Tone::Dim), format!("… {more} more lines (--full)")));
        }
        lines
    }
}

/// Whether the name of a tool can stand where the kind of an entry stands: it is short, and neither is nor looks like one of the others.
fn is_kind(name: &str) -> bool {
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    // Capitals alone are what denials have.
    let capitals = name.bytes().filter(u8::is_ascii_uppercase).count();
    let is_other = KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(name));
    is_plain && (1..=MAX_KIND).contains(&name.len()) && capitals <= 2 && !is_other
}

fn block(kind: &str, tone: Option<Tone>, lines: Vec<(Option<Tone>, String)>) -> Block {
    Block { kind: kind.to_owned(), tone, lines }
}

fn all(text: &str) -> Vec<(Option<Tone>, String)> {
    let text = safe(text.trim_end());
    text.lines().map(|line| (None, line.replace('\t', "    "))).collect()
}

fn dim(lines: Vec<(Option<Tone>, String)>) -> Vec<(Option<Tone>, String)> {
    lines.into_iter().map(|(tone, text)| (tone.or(Some(Tone::Dim)), text)).collect()
}

/// The lines that a text takes in this width. Words that are too long are broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if width == usize::MAX || text.is_empty() {
        return vec![text.to_owned()];
    }
    textwrap::wrap(text, Options::new(width)).into_iter().map(std::borrow::Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(entry: TranscriptEntry, columns: Option<usize>) -> Vec<String> {
        let screen = Screen::new(false, false).with_columns(columns);
        let view = TranscriptView::new(&screen, Timestamp::UNIX_EPOCH, false);
        view.lines(&TranscriptLine { ts: Timestamp::from_millisecond(1_250).unwrap(), entry })
    }

    #[test]
    fn no_line_of_an_agent_looks_like_an_entry() {
        let forged = "ok\r\u{1b}[2J\n   0.10s  DENIED   nothing\u{202e}";
        for columns in [None, Some(80), Some(40)] {
            let lines =
                shown(TranscriptEntry::Message { text: format!("{} {forged}", "x".repeat(200)) }, columns);
            assert!(lines[0].starts_with("   1.25s  agent"), "{lines:#?}");
            let margin = if columns == Some(40) { NARROW_MARGIN.to_owned() } else { " ".repeat(INDENT) };
            for line in &lines[1..] {
                assert!(line.starts_with(&margin), "{lines:#?}");
                assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
            }
            assert!(
                columns.is_none_or(|most| lines.iter().all(|line| line.chars().count() <= most)),
                "{lines:#?}"
            );
        }
    }

    #[test]
    fn no_tool_has_the_name_of_a_kind() {
        let denial = TranscriptEntry::Denial {
            tool: "shell".to_owned(),
            arguments: "curl".to_owned(),
            reason: "no".to_owned(),
        };
        let head = |entry| shown(entry, None)[0].split_at(INDENT - 1).0.trim_end().to_owned();
        let denied = head(denial);
        for name in ["DENIED", "denied", "DENlED", "DENIED ", "", "agent", "Edit", "\u{ff24}ENIED", "a\nb"] {
            let call = TranscriptEntry::ToolCall {
                call: None,
                tool: name.to_owned(),
                arguments: "shell  curl\ndenied by herma: no".to_owned(),
            };
            let seen = head(call);
            assert_eq!(seen, "   1.25s  tool", "{name:?}");
            assert_ne!(seen, denied);
        }
        for name in ["shell", "Read", "WebFetch", "mcp.x"] {
            assert!(is_kind(name), "{name}");
        }
        // On a narrow terminal the text begins at the left.
        for line in &shown(TranscriptEntry::Message { text: "a\n 1.25s  DENIED".to_owned() }, Some(40))[1..] {
            assert_ne!(line.trim_end(), denied);
        }
    }

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let output = (0..20).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let lines = shown(TranscriptEntry::ToolResult { call: None, output, failed: true }, None);
        assert_eq!(lines.len(), RESULT_LINES + 1);
        assert_eq!(lines[0], "   1.25s  failed   line 0");
        assert_eq!(lines[RESULT_LINES], "                   … 12 more lines (--full)");
    }

    #[test]
    fn an_edit_shows_old_and_new_lines() {
        let [removed, added] = ["a\nb", "c"].map(|text| Some(text.to_owned()));
        let lines = shown(TranscriptEntry::Edit { call: None, path: "src/x".into(), removed, added }, None);
        let blank = " ".repeat(INDENT);
        let expected = [
            "   1.25s  edit     src/x".to_owned(),
            format!("{blank}- a"),
            format!("{blank}- b"),
            format!("{blank}+ c"),
        ];
        assert_eq!(lines, expected);
    }
}
