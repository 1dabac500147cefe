//! The gate of the response shape: the model is asked through the run's own router whether it answers with content.

use herma_core::gate::Finding;
use herma_engines::Engine;
use herma_router::endpoint::Endpoint;
use herma_router::probe::{CONVERSING, Capabilities, ProbeBudget, ProbeFailed, probe_unless};

use super::plan::RouterPlan;
use super::router::RunRouter;
use crate::context::RunContext;

/// Asks the contract's model. Each question is admitted, budgeted and recorded like the engine's own.
pub(crate) fn response_shape(
    ctx: &RunContext<'_>,
    router: Option<&RunRouter>,
    plan: Option<&RouterPlan>,
) -> Finding {
    let Some((router, plan)) = router.zip(plan) else {
        return Finding::NotApplicable("the contract names no model".to_owned());
    };
    let (budget, cancellation) = (ProbeBudget::default(), &ctx.submission.cancellation);
    let ask = |endpoints: &[Endpoint]| {
        probe_unless(cancellation, router.address(), router.token(), &plan.model, endpoints, budget)
    };
    // An engine that asks at one API learns nothing from another one.
    let asks = ctx.installation.engines.get(&ctx.plan.engine).and_then(Engine::asks);
    let endpoints: Vec<Endpoint> = plan
        .endpoints()
        .iter()
        .copied()
        .filter(|endpoint| asks.is_none_or(|asks| asks == *endpoint))
        .collect();
    match first_that_takes_it(&endpoints, ask) {
        Ok(seen) => match seen.blocker() {
            None => Finding::Passed,
            Some((blocker, why)) => Finding::Missing(blocker.because(why)),
        },
        Err(failed) => Finding::Missing(failed.record()),
    }
}

/// Asks at one API after the other until one takes the question. One answer is enough: what is asked for is the model's
/// way to answer, and every question costs something. Where none takes it, the reason is the first one's.
fn first_that_takes_it(
    endpoints: &[Endpoint],
    ask: impl Fn(&[Endpoint]) -> Result<Capabilities, ProbeFailed>,
) -> Result<Capabilities, ProbeFailed> {
    let mut first = None;
    for endpoint in CONVERSING.into_iter().filter(|endpoint| endpoints.contains(endpoint)) {
        match ask(&[endpoint]) {
            Err(failed @ ProbeFailed::NotTaken { .. }) => first = first.or(Some(failed)),
            asked => return asked,
        }
    }
    Err(first.unwrap_or(ProbeFailed::NoDoor))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The failure, and the APIs that were probed, for APIs that are accepted, refused or not offered (none).
    fn asked(answers: [Option<bool>; 3]) -> (ProbeFailed, Vec<Endpoint>) {
        let seen = RefCell::new(Vec::new());
        let ask = |endpoints: &[Endpoint]| {
            let [endpoint] = endpoints else { panic!("one at a time: {endpoints:?}") };
            seen.borrow_mut().push(*endpoint);
            let at = CONVERSING.iter().position(|known| known == endpoint).unwrap();
            let why = at.to_string();
            Err(if answers[at].unwrap() {
                ProbeFailed::Unavailable { endpoint: *endpoint, why }
            } else {
                ProbeFailed::NotTaken { endpoint: *endpoint, why }
            })
        };
        let endpoints: Vec<Endpoint> =
            CONVERSING.into_iter().zip(answers).filter_map(|(endpoint, is)| is.map(|_| endpoint)).collect();
        let failed = first_that_takes_it(&endpoints, ask).unwrap_err();
        (failed, seen.into_inner())
    }

    #[test]
    fn the_next_api_is_asked_only_where_one_does_not_take_the_question() {
        let [chat, responses, messages] = CONVERSING;
        let (failed, seen) = asked([Some(true), Some(true), Some(true)]);
        assert_eq!(
            (failed, seen),
            (ProbeFailed::Unavailable { endpoint: chat, why: "0".to_owned() }, vec![chat])
        );
        let (failed, seen) = asked([Some(false), Some(true), Some(true)]);
        let elsewhere = ProbeFailed::Unavailable { endpoint: responses, why: "1".to_owned() };
        assert_eq!((failed, seen), (elsewhere, vec![chat, responses]));
        let (failed, seen) = asked([Some(false), None, Some(false)]);
        let nowhere = ProbeFailed::NotTaken { endpoint: chat, why: "0".to_owned() };
        assert_eq!((failed, seen), (nowhere, vec![chat, messages]));
        assert_eq!(asked([None, None, None]), (ProbeFailed::NoDoor, vec![]));
    }
}
