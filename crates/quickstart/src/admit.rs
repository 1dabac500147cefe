//! One page, one code, and a signature of its own for each record.

use herma_api::output::{QuickstartState, QuickstartStepName};
use herma_api::switch_engine;
use herma_home::EnabledEngines;

use crate::error::QuickstartError;
use crate::page::Page;
use crate::session::Session;
use crate::shell::word;

const STEP: QuickstartStepName = QuickstartStepName::Admit;

/// Has the page confirmed, signs each record over its own bytes, and enables the engine.
pub(crate) fn admit(session: &mut Session<'_>, page: Option<&Page>) -> Result<(), QuickstartError> {
    let built_in = session.adapter()?.built_in();
    let is_on = built_in || EnabledEngines::of(&session.installation.home).is_on(&session.engine);
    let Some(page) = page else {
        if is_on {
            session.done(STEP, QuickstartState::Current, vec!["nothing has to be signed".to_owned()], None);
        } else if session.choices.dry_run {
            let command = format!("herma engines enable {}", session.engine);
            session.done(STEP, QuickstartState::Planned, vec!["enable the engine".to_owned()], Some(command));
        } else {
            let command = format!("herma engines enable {}", session.engine);
            switch_engine(&session.installation, &session.engine, true)?;
            session.done(
                STEP,
                QuickstartState::Done,
                vec!["the engine is enabled".to_owned()],
                Some(command),
            );
        }
        return Ok(());
    };
    session.watch.page(page);
    let command = Some(command(session, page, is_on));
    if session.choices.dry_run {
        let detail = vec![format!("the code {} signs this page", page.code())];
        session.done(STEP, QuickstartState::Planned, detail, command);
        return Ok(());
    }
    // The key is opened first: a code is typed only if it can be used.
    if session.approver.is_none() {
        let approvers = session.installation.approvers();
        session.approver = Some(session.person.unlock(&approvers, session.choices.approver.as_ref())?);
    }
    session.person.confirm(page)?;
    session.check_cancelled()?;
    let mut detail = Vec::new();
    if let Some(approver) = &session.approver {
        let admissions = session.installation.admissions();
        for record in page.records() {
            let signed = admissions.sign(record, approver, session.installation.now())?;
            detail.push(format!("{}, signed by {}", record.id, signed.record.approver));
        }
    }
    if !is_on {
        switch_engine(&session.installation, &session.engine, true)?;
        detail.push(format!("engine {} enabled", session.engine));
    }
    session.done(STEP, QuickstartState::Done, detail, command);
    session.reopen()
}

/// The commands that sign the same records one by one.
fn command(session: &Session<'_>, page: &Page, is_on: bool) -> String {
    let approver = session.approver_flag();
    let sign = page
        .records()
        .iter()
        .map(|record| format!("herma admit sign {} {}{approver}", record.id.kind(), word(&record.id.name())));
    let enable = (!is_on).then(|| format!("herma engines enable {}", session.engine));
    sign.chain(enable).collect::<Vec<_>>().join(" && ")
}
