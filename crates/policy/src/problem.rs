//! A problem of a policy and its position.

use std::fmt;

use miette::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;

/// One thing that is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct PolicyProblem {
    /// The file.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// The column, from 1, where it is known.
    pub column: Option<u64>,
    /// The problem.
    pub problem: String,
    /// The remedy, if known.
    pub help: Option<String>,
}

impl PolicyProblem {
    /// At a byte of the file's text.
    pub(crate) fn at(file: &str, text: &str, offset: Option<usize>, problem: impl Into<String>) -> Self {
        let place = offset.and_then(|offset| text.get(..offset)).map(|before| {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |start| start.chars().count()) + 1;
            (line as u64, column as u64)
        });
        let (line, column) = place.unzip();
        Self { file: file.to_owned(), line, column, problem: problem.into(), help: None }
    }

    /// Cedar's diagnostic.
    pub(crate) fn of(file: &str, text: &str, diagnostic: &dyn Diagnostic) -> Self {
        let offset = diagnostic.labels().and_then(|mut labels| labels.next()).map(|label| label.offset());
        let help = diagnostic.help().map(|help| help.to_string());
        let said = diagnostic.to_string();
        // Cedar numbers the rules of a file; the line says more.
        let said = said
            .strip_prefix("for policy `policy")
            .and_then(|rest| rest.split_once("`, "))
            .map_or(said.as_str(), |(_, problem)| problem);
        Self { help, ..Self::at(file, text, offset, said) }
    }

    pub(crate) fn with_help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.problem)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// Every problem of the policies: none of them applies until all are fixed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<PolicyProblem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("\n"))
    }
}
