//! A contract's reference to an environment that is defined elsewhere. It is replaced by the definition when the contract is read,
//! so that digest, approval and evidence cover what runs.

use std::ops::Range;

use super::parse::{BadContract, split};
use crate::environment::EnvironmentDefinition;

/// The value that names the definition in the target itself.
const REPOSITORY: &str = "repository";

/// Where a definition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentReference {
    /// In the target, at the base of the run.
    Repository,
    /// In a file; a relative path starts from the contract's directory.
    File(String),
}

/// A reference and its place in the contract's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedReference {
    /// The reference.
    pub reference: EnvironmentReference,
    /// Its line, from 1.
    pub line: u64,
    /// Its column, from 1.
    pub column: u64,
    /// The bytes from the value to the end of the line.
    rest_of_line: Range<usize>,
}

impl PlacedReference {
    /// The reference of a contract whose `environment` is a word and not a mapping.
    pub fn find(text: &str) -> Result<Option<Self>, BadContract> {
        // Whether the contract is sound otherwise is what reading it says.
        let Ok((front, _)) = split(text) else { return Ok(None) };
        let mut start = 0;
        for (at, line) in front.split_inclusive('\n').enumerate() {
            if let Some(value) = line.strip_prefix("environment:") {
                return Self::of_value(value, start + line.len() - value.len(), at as u64 + 1);
            }
            start += line.len();
        }
        Ok(None)
    }

    fn of_value(value: &str, start: usize, line: u64) -> Result<Option<Self>, BadContract> {
        let written = value.trim_end_matches(['\n', '\r']);
        let word = written.trim_start();
        let start = start + written.len() - word.len();
        let rest_of_line = start..start + word.len();
        let word = word.split(" #").next().unwrap_or_default().trim_end();
        if word.is_empty() || word.starts_with(['{', '#', '&', '*', '!', '|', '>', '[']) {
            return Ok(None);
        }
        let column = ("environment:".len() + written.len() - written.trim_start().len() + 1) as u64;
        let unquoted = ['"', '\''].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
        let word = unquoted.unwrap_or(word);
        let is_file = word.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| word.ends_with(end));
        let reference = match word {
            REPOSITORY => EnvironmentReference::Repository,
            file if is_file => EnvironmentReference::File(file.to_owned()),
            other => {
                return Err(BadContract::new(
                    format!("`environment` is `{other}`"),
                    format!(
                        "expected `{REPOSITORY}`, the path of a file such as `../environments/node.yaml`, or keys such as \
                         `tools`"
                    ),
                )
                .at(line, column));
            }
        };
        Ok(Some(Self { reference, line, column, rest_of_line }))
    }

    /// The contract's text with the definition in place of the reference, on the same line.
    pub fn replaced(
        &self,
        text: &str,
        definition: &EnvironmentDefinition,
    ) -> Result<String, serde_json::Error> {
        let written = serde_json::to_string(definition)?;
        let (before, after) = (&text[..self.rest_of_line.start], &text[self.rest_of_line.end..]);
        Ok(format!("{before}{written} # from {}{after}", &text[self.rest_of_line.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Contract;

    fn contract(environment: &str) -> String {
        format!(
            "---\nid: a\ntitle: t\ntarget: {{ repo: . }}\nstage: 3\nallowed_paths: [a]\nenvironment:{environment}\nrisk: low\n---\nDo it.\n"
        )
    }

    #[test]
    fn a_word_is_a_reference_and_keys_are_none() {
        let find =
            |written: &str| PlacedReference::find(&contract(written)).unwrap().map(|found| found.reference);
        assert_eq!(find(" repository"), Some(EnvironmentReference::Repository));
        assert_eq!(find("  'repository'  # the target's"), Some(EnvironmentReference::Repository));
        let file = Some(EnvironmentReference::File("../node.yaml".to_owned()));
        assert_eq!(find(" ../node.yaml"), file);
        assert_eq!(find(" \"../node.yaml\" # shared"), file);
        for keys in [" { tools: [node] }", "\n  tools: [node]", " # below\n  tools: [node]"] {
            assert_eq!(find(keys), None, "{keys}");
        }
        let bad = PlacedReference::find(&contract(" node")).unwrap_err();
        assert_eq!((bad.line, bad.column), (Some(7), Some(14)));
    }

    #[test]
    fn the_definition_takes_the_place_of_the_reference_and_no_line_moves() {
        let definition: EnvironmentDefinition =
            serde_json::from_str(r#"{"tools":["node@22"],"setup":["echo '# no comment'"]}"#).unwrap();
        for written in [" ../node.yaml", " repository # the target's"] {
            let text = contract(written);
            let found = PlacedReference::find(&text).unwrap().unwrap();
            let replaced = found.replaced(&text, &definition).unwrap();
            assert_eq!(replaced.lines().count(), text.lines().count());
            let read = Contract::parse(replaced.as_bytes()).unwrap();
            assert_eq!(read.terms.environment.as_ref(), Some(&definition), "{replaced}");
            assert_eq!(PlacedReference::find(&replaced).unwrap(), None);
        }
    }
}
