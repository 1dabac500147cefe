//! Portkey's gateway; each request names its upstream.

use std::time::Duration;

use http::HeaderName;

use super::{Contender, LLM_GATEWAYS, Program, Site};
use crate::child::Recipe;
use crate::client::Front;

pub(super) const CONTENDER: Contender = Contender {
    starts_at_once: false,
    patience: Duration::from_mins(1),
    most_streams: Some(8),
    ..Contender::quick(LLM_GATEWAYS[1], Program::InPath("portkey"), prepare)
};

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let recipe = site.recipe([format!("--port={}", site.listen.port()), "--headless".to_owned()], []);
    let mut front = Front::new(site.listen, "bench");
    front.header(HeaderName::from_static("x-portkey-provider"), "openai");
    front.header(HeaderName::from_static("x-portkey-custom-host"), &format!("http://{}/v1", site.upstream));
    (recipe, front)
}
