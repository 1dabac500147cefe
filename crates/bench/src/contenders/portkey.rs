//! Portkey's gateway; it is told with each request where to go.

use std::time::Duration;

use http::HeaderName;

use super::{Contender, LLM_GATEWAYS, Site};
use crate::child::Recipe;
use crate::client::Front;

pub(super) const CONTENDER: Contender = Contender {
    starts_at_once: false,
    patience: Duration::from_mins(1),
    most_streams: Some(8),
    ..Contender::quick(LLM_GATEWAYS[1], Some("portkey"), prepare)
};

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let recipe = site.recipe([format!("--port={}", site.listen.port()), "--headless".to_owned()], []);
    let mut front = Front::new(site.listen, "bench");
    front.header(HeaderName::from_static("x-portkey-provider"), "openai");
    front.header(HeaderName::from_static("x-portkey-custom-host"), &format!("http://{}/v1", site.upstream));
    (recipe, front)
}
