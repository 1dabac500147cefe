//! The steps of a set-up, in order. Read this first.

use std::sync::Arc;

use herma_api::output::QuickstartOutput;
use herma_core::CancellationToken;
use herma_harness::{Installation, Settings, SystemClock};

use crate::choices::Choices;
use crate::error::QuickstartError;
use crate::page::Page;
use crate::person::Person;
use crate::repository::Tried;
use crate::session::Session;
use crate::shell::word;
use crate::watch::Watch;
use crate::{admit, agent, approver, defaults, inspect, model, prove, repository, target};

/// Sets an engine up. A step that is done already is left out; after an error the same call continues.
pub fn quickstart(
    choices: &Choices,
    settings: &Settings,
    cancellation: &CancellationToken,
    person: &dyn Person,
    watch: &dyn Watch,
) -> Result<QuickstartOutput, QuickstartError> {
    let mut installation = Installation::open(settings.clone(), Arc::new(SystemClock))?;
    installation.cancellation = cancellation.clone();
    let engine = inspect::engine(choices, &installation)?;
    let mut session = Session::new(choices, (person, watch), installation, engine);
    let inspection = inspect::inspect(&session)?;
    approver::approver(&mut session)?;
    session.check_cancelled()?;
    let of_engine = agent::agent(&mut session)?;
    session.check_cancelled()?;
    let chosen = model::model(&mut session)?;
    session.check_cancelled()?;
    let (model, of_model) = chosen.map_or((None, None), |chosen| (Some(chosen.model), chosen.record));
    let of_target = target::target(&session)?;
    let page = Page::of(of_engine.into_iter().chain(of_model).chain(of_target).collect());
    admit::admit(&mut session, page.as_ref())?;
    session.check_cancelled()?;
    prove::prove(&mut session)?;
    session.check_cancelled()?;
    if !choices.dry_run {
        defaults::set_do(&mut session, model.as_ref())?;
    }
    let tried = repository::repository(&mut session, model.as_ref())?;
    let next_step = match (&page, choices.dry_run) {
        (Some(page), true) => format!(
            "read the page, then run the same command with --code {} in place of --dry-run",
            page.code()
        ),
        (None, true) => "run the same command without --dry-run".to_owned(),
        (_, false) => {
            let flags = match tried {
                Tried::Known => "",
                Tried::Unknown(flags) => flags,
            };
            format!("herma do {}{flags}", word("say what to change"))
        }
    };
    Ok(QuickstartOutput {
        schema: "herma.quickstart/v1",
        engine: session.engine.clone(),
        ready: !choices.dry_run,
        inspection,
        steps: session.steps,
        page: page.as_ref().map(Page::output),
        next_step,
    })
}
