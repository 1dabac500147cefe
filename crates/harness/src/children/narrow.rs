//! Whether a child's contract is within its parent's rights. A contract that is not clearly within is refused with advice
//! on how to write it. The parent's rules apply to the child as well, so nothing depends on this reading of patterns alone.

use std::time::Duration;

use herma_core::Stage;
use herma_core::contract::{Pattern, Target, Terms};
use herma_core::engine::DestinationKind;

/// The bounds of a child.
pub(super) struct Bounds<'a> {
    /// The parent's rules: its contract's first.
    pub(super) terms: &'a [Terms],
    /// The remaining time of the parent.
    pub(super) left: Duration,
    pub(super) destination: DestinationKind,
}

/// Why the child's terms are wider than its parent's, if they are.
pub(super) fn wider(bounds: &Bounds<'_>, child: &Terms) -> Option<String> {
    let Some(parent) = bounds.terms.first() else { return Some("its parent has no contract".to_owned()) };
    place(bounds, child)
        .or_else(|| stage(parent, child))
        .or_else(|| bounds.terms.iter().find_map(|terms| paths(terms, child)))
        .or_else(|| limits(bounds, parent, child))
        .or_else(|| reach(parent, child))
}

fn place(bounds: &Bounds<'_>, child: &Terms) -> Option<String> {
    match &child.target {
        Target::Repo { repo, base: None } if repo.as_str() == "." => {}
        _ => {
            return Some(
                "a child works on the workspace of the run that asks for it: write `target: { repo: . }`"
                    .to_owned(),
            );
        }
    }
    let wanted = child.destination.filter(|wanted| *wanted != bounds.destination)?;
    let (wanted, there) = (wanted.as_str(), bounds.destination.as_str());
    Some(format!("`destination` is `{wanted}`, and its parent runs in `{there}`"))
}

fn stage(parent: &Terms, child: &Terms) -> Option<String> {
    if child.stage > parent.stage {
        return Some(format!("its stage is {}, and its parent's is {}", child.stage, parent.stage));
    }
    (child.stage > Stage::CopiedRepo)
        .then(|| format!("its stage is {}, and a child works on a copy: stage 3 at most", child.stage))
}

fn paths(parent: &Terms, child: &Terms) -> Option<String> {
    let wide = child.allowed_paths.as_slice().iter().find(|path| {
        !parent.allowed_paths.as_slice().iter().any(|allowed| lies_within(path.as_str(), allowed.as_str()))
    });
    if let Some(path) = wide {
        return Some(format!(
            "`allowed_paths` has `{path}`, which is not clearly within what its parent may change"
        ));
    }
    let lacks = |name: &str, what: &str| format!("`{name}` lacks `{what}`, which its parent has");
    let forbidden = parent.forbidden_paths.iter().find(|path| !child.forbidden_paths.contains(path));
    if let Some(path) = forbidden {
        return Some(lacks("forbidden_paths", path.as_str()));
    }
    let action = parent.forbidden_actions.iter().find(|action| !child.forbidden_actions.contains(action));
    if let Some(action) = action {
        return Some(lacks("forbidden_actions", action.as_str()));
    }
    // It names its engine itself: without this it could leave the hooks that its parent needs.
    if let Some(need) = parent.needs.iter().find(|need| !child.needs.contains(need)) {
        return Some(lacks("needs", need.as_str()));
    }
    let lifted: Option<&Pattern> = child.lift_paths.iter().find(|path| !parent.lift_paths.contains(path));
    lifted.map(|path| format!("`lift_paths` has `{path}`, which its parent has not"))
}

/// Whether everything that a pattern matches is matched by another one, as far as that can be read off: they are the same,
/// the other one matches everything, or is a plain directory that the first one starts with.
fn lies_within(pattern: &str, allowed: &str) -> bool {
    if pattern == allowed || allowed == "**" || allowed == "*" {
        return true;
    }
    let allowed = allowed.strip_prefix('/').unwrap_or(allowed);
    let directory = allowed.strip_suffix("/**").or_else(|| allowed.strip_suffix('/')).unwrap_or(allowed);
    let plain = !directory.is_empty() && !directory.contains(['*', '?', '[', '\\']);
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    let below = pattern.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
    plain && below.is_some_and(|rest| !rest.is_empty())
}

fn limits(bounds: &Bounds<'_>, parent: &Terms, child: &Terms) -> Option<String> {
    let total = child.limits.total.duration();
    if total > bounds.left {
        return Some(format!(
            "`limits.total` is {} s, and {} s are left of its parent's",
            total.as_secs(),
            bounds.left.as_secs()
        ));
    }
    match (parent.limits.memory, child.limits.memory) {
        (Some(most), wanted) if wanted.is_none_or(|wanted| wanted.0 > most.0) => {
            Some(format!("`limits.memory` is not set or above its parent's {} bytes", most.0))
        }
        _ => budget(parent, child),
    }
}

/// A child's spending counts for its parent whatever its contract says; this check makes the contract say so.
fn budget(parent: &Terms, child: &Terms) -> Option<String> {
    let (above, own) = (&parent.limits, &child.limits);
    let is_wide =
        |most: u64, wanted: Option<u64>| wanted.map_or(child.model.is_some(), |wanted| wanted > most);
    if let Some(most) = above.tokens.filter(|most| is_wide(most.0, own.tokens.map(|tokens| tokens.0))) {
        return Some(format!("`limits.tokens` is not set or above its parent's {}", most.0));
    }
    let most = above.usd.filter(|most| is_wide(most.0, own.usd.map(|usd| usd.0)))?;
    Some(format!("`limits.usd` is not set or above its parent's {most}"))
}

fn reach(parent: &Terms, child: &Terms) -> Option<String> {
    if child.model.is_some() && child.model != parent.model {
        return Some("`model` is not its parent's".to_owned());
    }
    if let Some(host) = child.egress.iter().find(|host| !parent.egress.contains(host)) {
        return Some(format!("`egress` has `{host}`, which its parent has not"));
    }
    if child.environment.is_some() {
        return Some("`environment` is for runs that a person starts".to_owned());
    }
    let toolchain = child.toolchains.iter().find(|wanted| !parent.toolchains.contains(wanted));
    toolchain.map(|_| "`toolchains` has one that its parent has not".to_owned())
}

#[cfg(test)]
mod tests {
    use herma_core::Contract;

    use super::*;

    const PARENT: [(&str, &str); 9] = [
        ("id", "parent"),
        ("title", "t"),
        ("target", "{ fixture: string-slugify }"),
        ("stage", "3"),
        ("allowed_paths", "[src/**, README.md]"),
        ("forbidden_paths", "[src/secret/**]"),
        ("forbidden_actions", "[push]"),
        ("limits", "{ total: 60s, memory: 1GiB }"),
        ("egress", "[a.example:443]"),
    ];

    fn terms(changed: &[(&str, &str)]) -> Terms {
        let kept = PARENT.iter().filter(|(key, _)| !changed.iter().any(|(new, _)| new == key));
        let lines: Vec<String> =
            kept.chain(changed).map(|(key, value)| format!("{key}: {value}\n")).collect();
        let lines = lines.concat();
        Contract::parse(format!("---\n{lines}---\nbrief\n").as_bytes()).unwrap().terms
    }

    fn child(changed: &[(&str, &str)]) -> Option<String> {
        child_of(&[], changed)
    }

    fn child_of(parent: &[(&str, &str)], changed: &[(&str, &str)]) -> Option<String> {
        let parent = [terms(parent)];
        let (left, destination) = (Duration::from_secs(30), DestinationKind::Sandbox);
        let usual = [("target", "{ repo: . }"), ("limits", "{ total: 30s, memory: 1GiB }")];
        let usual = usual.iter().filter(|(key, _)| !changed.iter().any(|(new, _)| new == key));
        let all: Vec<_> = usual.chain(changed).copied().collect();
        wider(&Bounds { terms: &parent, left, destination }, &terms(&all))
    }

    #[test]
    fn an_equal_or_narrower_contract_is_permitted() {
        assert_eq!(child(&[]), None);
        for changed in [
            ("stage", "2"),
            ("allowed_paths", "[src/a.rs, /src/b/**, README.md]"),
            ("forbidden_paths", "[src/secret/**, src/more/**]"),
            ("forbidden_actions", "[push, deploy]"),
            ("limits", "{ total: 1s, memory: 128MiB }"),
            ("egress", "[]"),
            ("destination", "sandbox"),
            ("needs", "[tool_hooks]"),
        ] {
            assert_eq!(child(&[changed]), None, "{changed:?}");
        }
    }

    #[test]
    fn a_child_that_asks_a_model_says_how_much_and_no_more_than_its_parent_may() {
        let model = ("model", "{ provider: p, model: m }");
        let parent = [model, ("limits", "{ total: 60s, tokens: 10k, usd: 1.00 }")];
        let with = |limits: &str, more: &[(&str, &str)]| {
            let limits = format!("{{ total: 30s{limits} }}");
            child_of(&parent, &[&[("limits", limits.as_str())], more].concat())
        };
        for limits in [", tokens: 10k, usd: 1.00", ", tokens: 1, usd: 0.50"] {
            assert_eq!(with(limits, &[model]), None, "{limits}");
        }
        for (limits, named) in [
            ("", "limits.tokens"),
            (", tokens: 10001, usd: 1.00", "limits.tokens"),
            (", tokens: 10k", "limits.usd"),
            (", tokens: 10k, usd: 1.01", "limits.usd"),
        ] {
            let why = with(limits, &[model]);
            assert!(why.as_ref().is_some_and(|why| why.contains(named)), "{limits}: {why:?}");
        }
        // A child without a model needs no budget, and gets no larger one either.
        assert_eq!(with("", &[]), None);
        assert!(with(", tokens: 10001", &[]).is_some());
        assert_eq!(child_of(&[model], &[model]), None, "what its parent does not limit it need not");
    }

    #[test]
    fn a_child_needs_of_its_engine_what_its_parent_needs() {
        let parent = [("needs", "[tool_hooks]")];
        assert_eq!(child_of(&parent, &[("needs", "[resume, tool_hooks]")]), None);
        for needs in ["[]", "[resume]"] {
            let why = child_of(&parent, &[("needs", needs)]);
            assert_eq!(why.as_deref(), Some("`needs` lacks `tool_hooks`, which its parent has"), "{needs}");
        }
    }

    #[test]
    fn a_contract_that_is_wider_in_any_dimension_is_refused_by_its_name() {
        for (changed, named) in [
            (("target", "{ fixture: string-slugify }"), "target"),
            (("target", "{ repo: ../other }"), "target"),
            (("target", "{ repo: ., base: HEAD~1 }"), "target"),
            (("destination", "host"), "destination"),
            (("stage", "4"), "stage"),
            (("allowed_paths", "['**']"), "allowed_paths"),
            (("allowed_paths", "[src/a.rs, other.rs]"), "allowed_paths"),
            (("allowed_paths", "[srcs/a.rs]"), "allowed_paths"),
            (("allowed_paths", "['s*/a.rs']"), "allowed_paths"),
            (("forbidden_paths", "[]"), "forbidden_paths"),
            (("forbidden_actions", "[]"), "forbidden_actions"),
            (("lift_paths", "[Cargo.lock]"), "lift_paths"),
            (("limits", "{ total: 31s, memory: 1GiB }"), "limits.total"),
            (("limits", "{ total: 30s }"), "limits.memory"),
            (("limits", "{ total: 30s, memory: 2GiB }"), "limits.memory"),
            (("model", "{ provider: p, model: m }"), "model"),
            (("egress", "[a.example:443, b.example:443]"), "egress"),
            (("toolchains", "[python]"), "toolchains"),
            (("environment", "{ setup: [make] }"), "environment"),
        ] {
            let why = child(&[changed]);
            assert!(why.as_ref().is_some_and(|why| why.contains(named)), "{changed:?}: {why:?}");
        }
    }
}
