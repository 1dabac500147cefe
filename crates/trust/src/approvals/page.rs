//! The text of an approval packet.

use herma_core::approval::{ApprovalRequest, Binding};
use herma_core::contract::ContractId;
use herma_core::contract::{Action, Limits, Terms};
use herma_core::environment::{EnvironmentDefinition, ExpectBefore, History, SetupOn};
use herma_core::stage::MutationScope;
use herma_core::visible::visible_line;
use herma_rules::forbidden_paths::built_in;
use serde::Serialize;

use super::fold::{Blanks, folded, wrapped};
use super::packet::Packet;

/// How wide the first column is.
const COLUMN: usize = 13;

/// How wide a line is at most.
const WIDTH: usize = 100;

/// The start of a continued line, after the first column.
const CONTINUED: &str = "| ";

/// How many blanks in a row a line of the brief keeps: as many as people indent by, and too few to reach the edge.
const INDENT: usize = 16;

/// How wide the first column is where it holds the names of actions.
const ACTION_COLUMN: usize = 22;

/// The commands of an environment, the network that they reach, and everything else that it decides.
fn environment_lines(definition: &EnvironmentDefinition) -> Vec<String> {
    // Taken apart so that a new key cannot be forgotten here.
    let EnvironmentDefinition {
        tools,
        fetch,
        setup,
        setup_on,
        registries,
        inputs,
        env,
        cache,
        rebuild,
        history,
    } = definition;
    let registries: Vec<&str> = registries.iter().map(|registry| registry.as_str()).collect();
    let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
    let with_network = format!("with network to {}", registries.join(", "));
    let mut lines = vec![format!("tools: {}", tools.join(", "))];
    lines.extend(fetch.iter().map(|command| format!("fetch, {with_network}: {command}")));
    lines.extend(setup.iter().map(|command| format!("setup, without network: {command}")));
    if definition.has_source_and_network() {
        lines.push("source and network together: fetch commands see the whole tree".to_owned());
    }
    if *rebuild {
        lines.push(
            "rebuild: a patch that changes a manifest or lock file is fetched and set up for, and verified with what it names"
                .to_owned(),
        );
    }
    match history {
        History::None => {}
        History::Full => lines.push("history: the agent sees all commits and tags of the base".to_owned()),
        History::Depth(commits) => {
            lines.push(format!("history: the agent sees {commits} commits of the base"));
        }
    }
    if *setup_on == SetupOn::Inputs {
        lines.push("setup runs on the inputs alone".to_owned());
    }
    lines.extend(env.iter().map(|(name, value)| format!("variable: {name}={value}")));
    lines.extend(inputs.iter().flatten().map(|input| format!("input: {}", input.as_str())));
    lines.extend(cache.iter().map(|path| format!("not part of the result: {}", path.as_str())));
    lines
}

/// A packet in lines.
pub(super) fn lines(packet: &Packet) -> Vec<String> {
    let Packet { request, terms, brief, evidence, reached_by_all, asker_signed, .. } = packet;
    let binding = &request.binding;
    // Taken apart so that a new term cannot be forgotten here. The binding says target, stage, model and destination.
    let Terms {
        id,
        title,
        target: _,
        stage: _,
        allowed_paths,
        forbidden_paths,
        lift_paths,
        forbidden_actions,
        verify,
        tests_may_change,
        success,
        require_diff,
        risk,
        authority,
        rollback,
        limits,
        model: _,
        destination: _,
        egress,
        toolchains,
        needs,
        environment,
        expect_before,
    } = terms;

    let mut page = Page::default();
    request_lines(&mut page, request, *asker_signed);

    page.title("What will change");
    page.one("task", title);
    page.one("target", &binding.target);
    page.one("base", &binding.base);
    page.one("stage", format!("{}: {}", binding.stage, scope(terms.mutation_scope())));
    page.each_exactly("may change", allowed_paths.as_slice());
    page.each_exactly(
        "lifted",
        lift_paths.iter().map(|path| format!("{path} (on the built-in list, and may change here)")),
    );
    page.each_exactly("may not", forbidden_paths);
    page.one("may not", format!("the built-in list of {} paths, but for what is lifted", built_in().len()));
    page.one("risk", word(risk));
    page.one("authority", authority.as_deref().unwrap_or("not said"));
    page.one("rollback", rollback.as_deref().unwrap_or("not said"));

    page.title("By whom, and where");
    binding_place(&mut page, binding);
    page.each("egress", egress);
    if !reached_by_all.is_empty() {
        page.each("egress also", reached_by_all);
    }
    page.each("toolchains", toolchains.iter().map(word));
    page.each("needs", needs);
    if let Some(definition) = environment {
        page.each_exactly("environment", environment_lines(definition));
    }
    page.one("limits", limits_line(limits));

    page.title("How it is checked");
    page.each_exactly("verify", verify);
    page.each("success", success);
    expected_before(&mut page, *expect_before);
    page.one("tests", tests_line(*tests_may_change));
    page.one("no change", if *require_diff { "is a failure" } else { "is not a failure" });

    page.title("Evidence so far");
    page.each("seen", evidence);

    blocked_actions(&mut page, forbidden_actions);

    binding_lines(&mut page, id, binding);

    brief_lines(&mut page, brief);
    page.lines
}

fn binding_place(page: &mut Page, binding: &Binding) {
    page.one("engine", &binding.engine);
    page.one("model", binding.model.as_deref().unwrap_or("none"));
    page.one("destination", binding.destination.as_str());
    if let Some(image) = &binding.image {
        page.one("image", image);
    }
}

fn expected_before(page: &mut Page, expected: ExpectBefore) {
    match expected {
        ExpectBefore::Any => {}
        ExpectBefore::Pass => page.one("before", "the base must pass"),
        ExpectBefore::Fail => page.one("before", "the base must fail"),
    }
}

fn request_lines(page: &mut Page, request: &ApprovalRequest, asker_signed: bool) {
    page.one("approval", format!("{} ({})", request.id, request.id.short()));
    let vouched = if asker_signed { "signed" } else { "nobody vouches for this name" };
    page.one("asked by", format!("{} ({vouched}) at {}", request.requested_by, request.requested_at));
    page.one("because", &request.reason);
    page.one("good until", request.expires_at);
}

fn tests_line(may_change: bool) -> &'static str {
    if may_change {
        "may be rewritten by the engine, and so may the files that decide what verification does"
    } else {
        "must pass as they were, with the files that decide what verification does as they were"
    }
}

fn blocked_actions(page: &mut Page, forbidden: &[Action]) {
    page.title("What stays blocked");
    for action in Action::BUILT_IN.iter().chain(forbidden) {
        page.put(action.as_str(), ACTION_COLUMN, describe_action(*action), Blanks::Fold(1));
    }
}

fn binding_lines(page: &mut Page, contract: &ContractId, binding: &Binding) {
    page.title("Bound to");
    page.one("contract", format!("{contract} {}", binding.contract_digest));
    page.one("engine", binding.engine_digest);
    let admission = binding.target_admission.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
    page.one("admission", admission);
    page.one("policy", binding.policy_digest);
    page.one("egress", binding.egress_digest);
}

fn brief_lines(page: &mut Page, brief: &str) {
    page.title("Brief");
    for line in brief.trim_end().lines() {
        let line = folded(&visible_line(line), Blanks::Fold(INDENT));
        let parts = wrapped(&line, WIDTH - "  | ".len());
        page.lines.extend(parts.into_iter().map(|part| format!("  | {part}")));
    }
}

/// The lines of a packet so far. The texts of others come in through [`Page::put`], which makes them visible.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
}

impl Page {
    fn title(&mut self, title: &str) {
        self.lines.extend([String::new(), title.to_owned()]);
    }

    fn one(&mut self, name: &str, value: impl ToString) {
        self.put(name, COLUMN, value, Blanks::Fold(1));
    }

    #[allow(clippy::needless_pass_by_value, reason = "a page takes texts, numbers and times as they come")]
    fn put(&mut self, name: &str, column: usize, value: impl ToString, blanks: Blanks) {
        let value = folded(&visible_line(&value.to_string()), blanks);
        let parts = wrapped(&value, WIDTH - "  ".len() - column - " ".len() - CONTINUED.len());
        for (at, part) in parts.iter().enumerate() {
            self.lines.push(match at {
                0 => format!("  {name:column$} {part}"),
                _ => format!("  {:column$} {CONTINUED}{part}", ""),
            });
        }
    }

    fn each(&mut self, name: &str, values: impl IntoIterator<Item = impl ToString>) {
        self.list(name, values, Blanks::Fold(1));
    }

    /// The same for text that a machine reads literally: every blank of it counts.
    fn each_exactly(&mut self, name: &str, values: impl IntoIterator<Item = impl ToString>) {
        self.list(name, values, Blanks::Spell);
    }

    /// An empty list is shown as `none`.
    fn list(&mut self, name: &str, values: impl IntoIterator<Item = impl ToString>, blanks: Blanks) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            self.one(name, "none");
        }
        values.for_each(|value| self.put(name, COLUMN, value, blanks));
    }
}

/// The name of a value as files spell it.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn scope(scope: MutationScope) -> &'static str {
    match scope {
        MutationScope::None => "nothing changes",
        MutationScope::FixtureCopy => "a copy of a built-in fixture",
        MutationScope::RepositoryCopy => "a copy of the target",
        MutationScope::DisposableRepository => "a throw-away repository made for the run",
        MutationScope::OneNewRef => "one new ref with one commit in the target",
    }
}

fn describe_action(action: Action) -> &'static str {
    match action {
        Action::Push => "sending commits to a remote",
        Action::Merge => "merging branches",
        Action::Deploy => "putting something into production",
        Action::Close => "closing what others opened",
        Action::PrOpen => "opening a pull request",
        Action::IssueClose => "closing an issue",
        Action::PublicPublication => "publishing a package, a page or a message",
        Action::CredentialChange => "changing a credential",
        Action::VendorSourceMutation => "changing vendored sources",
        Action::Tag => "making a tag",
    }
}

fn limits_line(limits: &Limits) -> String {
    let Limits { total, startup, idle, memory, tokens, usd } = limits;
    let most = |value: Option<String>| value.unwrap_or_else(|| "unlimited".to_owned());
    let memory = most(memory.map(|value| value.to_string()));
    let tokens = most(tokens.map(|value| value.to_string()));
    let usd = most(usd.map(|value| value.to_string()));
    format!("total {total}, startup {startup}, idle {idle}, memory {memory}, tokens {tokens}, usd {usd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_holds_every_action() {
        let longest = Action::ALL.iter().map(|action| action.as_str().len()).max();
        assert_eq!(longest, Some(ACTION_COLUMN));
    }
}
