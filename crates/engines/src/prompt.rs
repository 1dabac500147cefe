//! The prompt of an agent: the contract's brief, and the checks that follow.

use std::fmt::Write as _;

use herma_core::Contract;

use crate::engine::Assignment;

/// The prompt for this assignment: the whole contract, or the message for a resumed session.
pub(crate) fn told(assignment: &Assignment<'_>) -> String {
    match assignment.resume {
        Some(resume) => resume.message.clone(),
        None => match assignment.note {
            Some(note) => format!("{}\n## State of the files\n\n{note}\n", prompt(assignment.contract)),
            None => prompt(assignment.contract),
        },
    }
}

/// The prompt for this contract. It enforces nothing: the rules are there so that an agent can follow them.
#[must_use]
pub fn prompt(contract: &Contract) -> String {
    let terms = &contract.terms;
    let mut text =
        format!("# {}\n\n{}\n\n## How the result is checked\n\n", terms.title, contract.brief.trim());
    list(&mut text, "Only these paths may change", terms.allowed_paths.as_slice().iter());
    list(&mut text, "These paths may not change", terms.forbidden_paths.iter());
    list(&mut text, "These commands must exit with 0", terms.verify.iter());
    list(&mut text, "A reader should find", terms.success.iter());
    text.push_str(
        "- Work in the current directory. Leave the result in the files: no commit is needed, and nothing is pushed, \
         published or deployed.\n- Nobody can answer a question.\n",
    );
    if terms.egress.is_empty() {
        text.push_str("- There is no network.\n");
    } else {
        list(&mut text, "The network reaches nothing but", terms.egress.iter());
    }
    text
}

fn list(text: &mut String, what: &str, items: impl Iterator<Item = impl std::fmt::Display>) {
    let items: Vec<String> = items.map(|item| format!("`{item}`")).collect();
    if !items.is_empty() {
        let _ = writeln!(text, "- {what}: {}", items.join(", "));
    }
}
