//! `herma policy check|test|explain`.

use std::path::PathBuf;
use std::process::ExitCode;

use herma_api::{PolicyQuestion, decide_case, decision_item, find_engine, read_contract, rule_item};
use herma_core::Stage;
use herma_core::contract::Action;
use herma_core::policy_case::PolicyCases;
use herma_harness::{POLICY_DIR, PolicyError, read_policies, read_policy, read_policy_cases};
use herma_policy::{Policies, PolicyFile, PolicyRequester, Problems};

use crate::args::{self, PolicyExplain};
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{PolicyCheckOutput, PolicyExplainOutput, PolicyTestOutput};
use crate::screen::{Screen, Tone, safe, safe_line};

pub(crate) fn policy(command: &args::Policy, environment: &Environment, screen: &Screen) -> Ended {
    match command {
        args::Policy::Check(args) => check(args, environment, screen),
        args::Policy::Test(args) => test(args, environment, screen),
        args::Policy::Explain(args) => explain(args, environment, screen),
    }
}

fn check(args: &args::PolicyCheck, environment: &Environment, screen: &Screen) -> Ended {
    let (digest, rules, problems) = match PolicySource::new(&args.files, environment)?.compile() {
        Ok(policies) => (Some(policies.digest()), policies.rules().map(rule_item).collect(), Vec::new()),
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
    let cases = cases.into_iter().map(|case| decide_case(&policies, case)).collect::<Result<Vec<_>, _>>()?;
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
        find_engine(&installation, engine)?;
    }
    let read = |contract| read_contract(contract, installation.settings());
    let contract = args.contract.as_deref().map(read).transpose()?.map(|read| read.contract);
    let terms = contract.as_ref().map(|contract| &contract.terms);
    let requester = PolicyRequester {
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
    let question = PolicyQuestion { tool: tool.as_deref(), action: *action, resource, child: child.as_ref() };
    let decision = decision_item(&policies, question.decide(&policies, &requester)?);
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

/// The files of policies: the named ones, or those of the installation.
enum PolicySource<'a> {
    Named(&'a [PathBuf]),
    Directory(PathBuf),
}

impl<'a> PolicySource<'a> {
    fn new(named: &'a [PathBuf], environment: &Environment) -> Result<Self, Failure> {
        Ok(if named.is_empty() {
            Self::Directory(environment.home()?.join(POLICY_DIR))
        } else {
            Self::Named(named)
        })
    }

    fn compile(&self) -> Result<Policies, PolicyError> {
        let files: Vec<PolicyFile> = match self {
            Self::Directory(dir) => read_policies(dir)?,
            Self::Named(files) => {
                let read = |file: &PathBuf| read_policy(file, file.display().to_string());
                files.iter().map(read).collect::<Result<_, _>>()?
            }
        };
        Ok(Policies::compile(&files)?)
    }
}

fn compiled(named: &[PathBuf], environment: &Environment) -> Result<Policies, Failure> {
    PolicySource::new(named, environment)?.compile().map_err(|error| unusable(&error))
}

fn unusable(error: &PolicyError) -> Failure {
    if matches!(error, PolicyError::Read { .. }) {
        return Failure::bad_input(error).hint("check the path and the file");
    }
    Failure::bad_input(error).hint("fix it; `herma policy check` shows whether it is valid")
}
