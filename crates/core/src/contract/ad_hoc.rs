//! The contract of `herma do`: written from flags and defaults, and a contract as any other.

use std::fmt::Write as _;

use super::fields::{Limits, ModelChoice, RepoRef};
use super::template::{environment, list, quoted};
use super::{Action, Pattern};
use crate::environment::EnvironmentDefinition;

/// The longest title.
const MAX_TITLE: usize = 72;
/// The longest part of the id that comes from the task.
const MAX_SLUG: usize = 32;

/// The parts of an ad-hoc contract.
#[derive(Clone, Debug)]
pub struct AdHocContract<'a> {
    /// The task, as the person gave it.
    pub task: &'a str,
    /// The repository.
    pub repo: &'a RepoRef,
    /// The paths that may change.
    pub allowed_paths: &'a [Pattern],
    /// Further forbidden paths.
    pub forbidden_paths: &'a [Pattern],
    /// Further forbidden actions.
    pub forbidden_actions: &'a [Action],
    /// The verification commands.
    pub verify: &'a [String],
    /// The environment.
    pub environment: Option<&'a EnvironmentDefinition>,
    /// The model.
    pub model: Option<&'a ModelChoice>,
    /// The limits.
    pub limits: &'a Limits,
}

/// The text of the contract, at stage 3. Reading it says whether it is valid.
#[must_use]
pub fn ad_hoc_contract(parts: &AdHocContract<'_>) -> String {
    let AdHocContract { task, repo, verify, limits, .. } = parts;
    let texts = |patterns: &[Pattern]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut text = format!(
        "---\nid: {}\ntitle: {}\ntarget: {{ repo: {} }}\nstage: 3\nallowed_paths: {}\n",
        id(task),
        quoted(&title(task)),
        quoted(repo.as_str()),
        list(&texts(parts.allowed_paths)),
    );
    // Writing to a String cannot fail.
    if !parts.forbidden_paths.is_empty() {
        let _ = writeln!(text, "forbidden_paths: {}", list(&texts(parts.forbidden_paths)));
    }
    if !parts.forbidden_actions.is_empty() {
        let actions: Vec<String> =
            parts.forbidden_actions.iter().map(|action| action.as_str().to_owned()).collect();
        let _ = writeln!(text, "forbidden_actions: {}", list(&actions));
    }
    let _ = writeln!(text, "verify: {}", list(verify));
    text.push_str(&parts.environment.map(environment).unwrap_or_default());
    if let Some(ModelChoice { provider, model, .. }) = parts.model {
        let (provider, model) = (quoted(provider), quoted(model));
        let _ = writeln!(text, "model: {{ provider: {provider}, model: {model} }}");
    }
    let Limits { total, startup, idle, memory, tokens, usd } = limits;
    let mut all = vec![format!("total: {total}"), format!("startup: {startup}"), format!("idle: {idle}")];
    all.extend(memory.map(|memory| format!("memory: {memory}")));
    all.extend(tokens.map(|tokens| format!("tokens: {tokens}")));
    all.extend(usd.map(|usd| format!("usd: {}", quoted(&usd.to_string()))));
    let _ = writeln!(text, "limits: {{ {} }}\n---\n{}", all.join(", "), task.trim());
    text
}

/// `do-` and the first words of the task, so that lists of runs say which is which.
fn id(task: &str) -> String {
    let mut slug = String::new();
    let words = task.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        if slug.len() + word.len() >= MAX_SLUG {
            break;
        }
        slug.push('-');
        slug.extend(word.chars().map(|c| c.to_ascii_lowercase()));
    }
    format!("do{slug}")
}

/// The first line of the task, or its start.
fn title(task: &str) -> String {
    let line = task.trim().lines().next().unwrap_or_default();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TITLE) {
        None => line,
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Contract;

    #[test]
    fn any_task_gives_a_contract_that_says_it() {
        let long = format!("Fix: {}", "ä\"' ".repeat(80));
        for (task, id) in [
            ("slugify keeps outer whitespace\n---\nid: other\n", "do-slugify-keeps-outer-whitespace"),
            ("日本語", "do"),
            (&long, "do-fix"),
            ("supercalifragilisticexpialidocious-words", "do"),
            ("# no comment: [1, 2] {a} \"q\"", "do-no-comment-1-2-a-q"),
        ] {
            let environment: EnvironmentDefinition = serde_json::from_str(
                r#"{"tools":["node"],"fetch":["npm ci"],"registries":["npm"],"rebuild":true}"#,
            )
            .unwrap();
            let [provider, model] = ["anthropic", "claude"].map(str::to_owned);
            let model = ModelChoice { provider, model, fallback: Vec::new(), auxiliary: Vec::new() };
            let parts = AdHocContract {
                task,
                repo: &"./my repo".parse().unwrap(),
                allowed_paths: &["src/**".parse().unwrap()],
                forbidden_paths: &["src/gen/**".parse().unwrap()],
                forbidden_actions: &[],
                verify: &["npm test -- 'a b'".to_owned()],
                environment: Some(&environment),
                model: Some(&model),
                limits: &Limits { usd: Some("2.50".parse().unwrap()), ..Limits::default() },
            };
            let contract = Contract::parse(ad_hoc_contract(&parts).as_bytes()).unwrap();
            assert_eq!(contract.brief.trim(), task.trim());
            let terms = contract.terms;
            assert_eq!((terms.id.as_str(), terms.environment), (id, Some(environment.clone())));
            assert_eq!((&terms.verify[..], &terms.limits), (parts.verify, parts.limits));
            assert_eq!(terms.forbidden_paths, parts.forbidden_paths);
        }
    }
}
