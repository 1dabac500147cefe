//! `herma policy check|test|explain`.

use std::path::PathBuf;
use std::process::ExitCode;

use herma_api::read_contract;
use herma_core::Stage;
use herma_core::contract::{Action, ContractId};
use herma_core::engine::EngineName;
use herma_core::policy_case::{Expected, PolicyCase, PolicyCases};
use herma_core::tool::{ToolAction, ToolCall};
use herma_harness::{POLICY_DIR, PolicyError, read_policies, read_policy, read_policy_cases};
use herma_policy::{ChildRun, Policies, PolicyDecision, PolicyFile, PolicyRequester, PolicyRule, Problems};

use crate::args::{self, PolicyExplain};
use crate::commands::engines::find;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{
    CaseItem, DecisionItem, PolicyCheckOutput, PolicyExplainOutput, PolicyTestOutput, RuleItem,
};
use crate::screen::{Screen, Tone, safe, safe_line};

pub(crate) fn policy(command: &args::Policy, environment: &Environment, screen: &Screen) -> Ended {
    match command {
        args::Policy::Check(args) => check(args, environment, screen),
        args::Policy::Test(args) => test(args, environment, screen),
        args::Policy::Explain(args) => explain(args, environment, screen),
    }
}

fn check(args: &args::PolicyCheck, environment: &Environment, screen: &Screen) -> Ended {
    let compiled = read(&args.files, environment)?.and_then(|files| Ok(Policies::compile(&files)?));
    let (digest, rules, problems) = match compiled {
        Ok(policies) => (Some(policies.digest()), policies.rules().map(item).collect(), Vec::new()),
        Err(PolicyError::Wrong(Problems(problems))) => (None, Vec::new(), problems),
        Err(error) => return Err(unusable(&error)),
    };
    let output = PolicyCheckOutput { schema: "herma.policy-check/v1", digest, rules, problems };
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        for problem in &output.problems {
            let word = screen.paint(Tone::Bad, "wrong");
            screen.line(format_args!("{word}  {}", safe(&problem.to_string())));
        }
        for rule in &output.rules {
            screen.line(format_args!(
                "{:<6}  {:<24}  {}",
                rule.effect,
                safe_line(&rule.id),
                safe_line(&rule.file)
            ));
        }
        if let Some(digest) = output.digest {
            screen.line(format_args!("{}  {digest}", screen.paint(Tone::Good, "ok")));
        }
    }
    Ok(if output.problems.is_empty() { ExitCode::SUCCESS } else { Failure::BAD_INPUT.into() })
}

fn test(args: &args::PolicyTest, environment: &Environment, screen: &Screen) -> Ended {
    let policies = compiled(&args.policies, environment)?;
    let shown = args.file.display();
    let bytes = read_policy_cases(&args.file).map_err(|error| {
        Failure::bad_input(format!("{shown} cannot be read: {error}"))
            .hint("name a file of cases; docs/policy.md has an example")
    })?;
    let PolicyCases { cases } = PolicyCases::parse(&bytes).map_err(|error| {
        Failure::bad_input(format!("{shown}: {error}")).hint("docs/policy.md has an example")
    })?;
    if cases.is_empty() {
        return Err(Failure::bad_input(format!("{shown} holds no case")));
    }
    let cases = cases.into_iter().map(|case| decided(&policies, case)).collect::<Result<Vec<_>, _>>()?;
    let passed = cases.iter().all(|case| case.difference.is_none());
    let output = PolicyTestOutput { schema: "herma.policy-test/v1", passed, cases };
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        for case in &output.cases {
            match &case.difference {
                None => {
                    screen.line(format_args!(
                        "{}     {}",
                        screen.paint(Tone::Good, "ok"),
                        safe_line(&case.name)
                    ));
                }
                Some(difference) => {
                    let word = screen.paint(Tone::Bad, "wrong");
                    screen.line(format_args!("{word}  {}: {}", safe_line(&case.name), safe_line(difference)));
                }
            }
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn explain(args: &PolicyExplain, environment: &Environment, screen: &Screen) -> Ended {
    let policies = compiled(&args.policies, environment)?;
    let installation = open(environment, screen)?;
    for engine in [Some(&args.engine), args.child.as_ref()].into_iter().flatten() {
        find(&installation, engine)?;
    }
    let contract = args.contract.as_deref().map(read_contract).transpose()?.map(|read| read.contract);
    let terms = contract.as_ref().map(|contract| &contract.terms);
    let asker = PolicyRequester {
        run: None,
        engine: args.engine.clone(),
        contract: terms.map(|terms| terms.id.to_string()).unwrap_or_default(),
        above: Vec::new(),
        stage: args.stage.or(terms.map(|terms| terms.stage)).unwrap_or(Stage::CopiedRepo),
        forbidden: terms
            .map_or_else(
                || Action::BUILT_IN.into(),
                |terms| herma_rules::actions::forbidden(terms, &Action::ALL),
            )
            .into_iter()
            .collect(),
        network: terms.is_some_and(|terms| !terms.egress.is_empty()),
    };
    let PolicyExplain { tool, action, resource, child, .. } = args;
    let question = Question { tool: tool.as_deref(), action: *action, resource, child: child.as_ref() };
    let decision = shown(&policies, question.decided(&policies, &asker)?);
    let output = PolicyExplainOutput {
        schema: "herma.policy-explain/v1",
        action: args.action,
        resource: args.resource.clone(),
        decision,
        policy: policies.digest(),
    };
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let decision = &output.decision;
    let word = if decision.allowed {
        screen.paint(Tone::Good, "allowed")
    } else {
        screen.paint(Tone::Bad, "denied")
    };
    screen.line(format_args!("{word}: {}", safe_line(&decision.reason)));
    if !decision.does.is_empty() {
        let does: Vec<&str> = decision.does.iter().map(|action| action.as_str()).collect();
        screen.line(format_args!("  it would   {}", does.join(", ")));
    }
    for rule in &decision.rules {
        screen.line(format_args!(
            "  {:<8}   {} in {}",
            rule.effect,
            safe_line(&rule.id),
            safe_line(&rule.file)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that were named, or those of the installation.
fn read(
    named: &[PathBuf],
    environment: &Environment,
) -> Result<Result<Vec<PolicyFile>, PolicyError>, Failure> {
    if named.is_empty() {
        return Ok(read_policies(&environment.home()?.join(POLICY_DIR)));
    }
    Ok(named.iter().map(|file: &PathBuf| read_policy(file, file.display().to_string())).collect())
}

fn compiled(named: &[PathBuf], environment: &Environment) -> Result<Policies, Failure> {
    let files = read(named, environment)?.map_err(|error| unusable(&error))?;
    Policies::compile(&files).map_err(|problems| unusable(&problems.into()))
}

fn unusable(error: &PolicyError) -> Failure {
    if matches!(error, PolicyError::Read { .. }) {
        return Failure::bad_input(error).hint("check the path, and what lies there");
    }
    Failure::bad_input(error).hint("mend it; `herma policy check` says whether it is")
}

fn decided(policies: &Policies, case: PolicyCase) -> Result<CaseItem, Failure> {
    let asker = PolicyRequester {
        run: None,
        engine: case.engine,
        contract: case.contract,
        above: Vec::new(),
        stage: case.stage,
        forbidden: Action::BUILT_IN.into_iter().chain(case.forbidden).collect(),
        network: case.network,
    };
    let (tool, child) = (case.tool.as_deref(), case.child.as_ref());
    let question = Question { tool, action: case.action, resource: &case.resource, child };
    let decision = question
        .decided(policies, &asker)
        .map_err(|why| Failure { what: format!("the case `{}`: {}", case.name, why.what), ..why })?;
    let as_expected = decision.allowed == (case.expect == Expected::Allow);
    let difference = if as_expected {
        let by = |rules: &[String]| if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") };
        let other = case.rules.filter(|rules| *rules != decision.rules);
        other.map(|rules| format!("{} decides it, and not {}", by(&decision.rules), by(&rules)))
    } else {
        let word = if decision.allowed { "allowed" } else { "denied" };
        Some(format!("it is {word}: {}", decision.reason))
    };
    Ok(CaseItem { name: case.name, difference, decision: shown(policies, decision) })
}

/// What is asked about: a tool call, or a child run of this engine.
struct Question<'a> {
    tool: Option<&'a str>,
    action: ToolAction,
    resource: &'a str,
    child: Option<&'a EngineName>,
}

impl Question<'_> {
    fn decided(&self, policies: &Policies, asker: &PolicyRequester) -> Result<PolicyDecision, Failure> {
        let Self { tool, action, resource, child } = *self;
        let subject = resource.to_owned();
        match child {
            None => {
                let tool = tool.unwrap_or(action.as_str()).to_owned();
                Ok(policies.decide(asker, &ToolCall { tool, action, subject }))
            }
            Some(engine) if action == ToolAction::Spawn && tool.is_none() => {
                let named: ContractId = subject.parse().map_err(|bad| {
                    Failure::bad_input(format!("a child run is named by its contract: {bad}"))
                        .hint("name the `id` of the child's contract as the resource")
                })?;
                let child = ChildRun { engine: engine.clone(), contract: named.into() };
                Ok(policies.decide_child(asker, &child))
            }
            Some(_) => {
                Err(Failure::bad_input("a child run is asked for by the action `spawn` and by no tool")
                    .hint("name no other action and no tool, or leave the child's engine out"))
            }
        }
    }
}

fn shown(policies: &Policies, decision: PolicyDecision) -> DecisionItem {
    let rules = policies.rules().filter(|rule| decision.rules.contains(&rule.id)).map(item).collect();
    DecisionItem { allowed: decision.allowed, rules, does: decision.does, reason: decision.reason }
}

fn item(rule: &PolicyRule) -> RuleItem {
    RuleItem {
        id: rule.id.clone(),
        file: rule.file.clone(),
        effect: if rule.forbids { "forbid" } else { "permit" },
        reason: rule.reason.clone(),
    }
}
