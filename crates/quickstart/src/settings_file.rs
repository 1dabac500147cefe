//! `do.engine` and `do.model` in `settings.yaml`: an edit of two lines that keeps everything else, comments too.

use herma_core::admission::ModelRef;
use herma_core::engine::EngineName;
use herma_harness::OperatorSettings;

/// The start of the block.
const BLOCK: &str = "do:";

/// The text with this engine and model for `herma do`; none where it says so already. The error says what to write by hand.
pub(crate) fn with_do(
    text: &str,
    engine: &EngineName,
    model: Option<&ModelRef>,
) -> Result<Option<String>, String> {
    let by_hand = || {
        let model = model.map(|model| format!(", model: {model}")).unwrap_or_default();
        format!("write `do: {{ engine: {engine}{model} }}` into it yourself")
    };
    let before = OperatorSettings::parse(text).map_err(|bad| bad.to_string())?;
    let mut wanted = before.clone();
    wanted.do_.engine = Some(engine.clone());
    wanted.do_.model = model.cloned().or(wanted.do_.model);
    if wanted == before {
        return Ok(None);
    }
    let mut values = vec![("engine", engine.to_string())];
    values.extend(model.map(|model| ("model", quoted(&model.to_string()))));
    let changed = edited(text, &values);
    // Whatever the text looked like: the result says what is wanted, and nothing else is different.
    match OperatorSettings::parse(&changed) {
        Ok(read) if read == wanted => Ok(Some(changed)),
        _ => Err(by_hand()),
    }
}

fn edited(text: &str, values: &[(&str, String)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(start) = lines.iter().position(|line| line.trim_end() == BLOCK) else {
        lines.push(BLOCK.to_owned());
        lines.extend(values.iter().map(|(key, value)| format!("  {key}: {value}")));
        return joined(&lines);
    };
    let inside = |line: &String| line.starts_with(' ') || line.trim().is_empty() || line.starts_with('#');
    let length = lines[start + 1..].iter().take_while(|line| inside(line)).count();
    let indent = lines[start + 1..start + 1 + length]
        .iter()
        .find(|line| !line.trim().is_empty() && line.starts_with(' '))
        .map_or(2, |line| line.len() - line.trim_start().len());
    // A line that is inserted makes the block longer.
    for (inserted, (key, value)) in values.iter().rev().enumerate() {
        let length = length + inserted;
        let own = lines[start + 1..start + 1 + length].iter().position(|line| {
            line.len() - line.trim_start().len() == indent
                && line.trim_start().starts_with(&format!("{key}:"))
        });
        match own {
            Some(at) => {
                let line = &mut lines[start + 1 + at];
                let comment = line.split_once(" #").map(|(_, rest)| format!(" #{rest}")).unwrap_or_default();
                *line = format!("{}{key}: {value}{comment}", " ".repeat(indent));
            }
            None => lines.insert(start + 1, format!("{}{key}: {value}", " ".repeat(indent))),
        }
    }
    joined(&lines)
}

fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// A name that YAML could read as something else is quoted.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str) -> Result<Option<String>, String> {
        let model: ModelRef = "anthropic/claude-sonnet-4-5".parse().unwrap();
        with_do(text, &"claude".parse().unwrap(), Some(&model))
    }

    #[test]
    fn two_lines_are_written_and_everything_else_stays() {
        let block = "do:\n  engine: claude\n  model: anthropic/claude-sonnet-4-5\n";
        for (before, after) in [
            ("", block.to_owned()),
            (
                "# mine\nseparation_of_duties: true # two people\n",
                format!("# mine\nseparation_of_duties: true # two people\n{block}"),
            ),
            (
                "do:\n  # what I use\n  model: openai/gpt-5 # good\n  limits: { usd: 2.00 }\noutcome_within: 2h\n",
                "do:\n  engine: claude\n  # what I use\n  model: anthropic/claude-sonnet-4-5 # good\n  limits: { usd: 2.00 }\noutcome_within: 2h\n".to_owned(),
            ),
            (
                "do:\n    engine: codex\n",
                "do:\n    model: anthropic/claude-sonnet-4-5\n    engine: claude\n".to_owned(),
            ),
        ] {
            assert_eq!(edit(before).unwrap().as_deref(), Some(&*after), "{before}");
            assert_eq!(edit(&after).unwrap(), None, "once more there is nothing to do");
        }
    }

    #[test]
    fn a_text_that_cannot_be_edited_safely_is_left_to_the_person() {
        for text in ["do: { engine: codex }\n", "? do\n: engine: codex\n"] {
            let error = edit(text).unwrap_err();
            assert!(error.contains("do: { engine: claude, model: anthropic/claude-sonnet-4-5 }"), "{error}");
        }
        assert!(edit("no: settings\n").is_err());
    }
}
