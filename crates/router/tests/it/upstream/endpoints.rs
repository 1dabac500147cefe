//! The endpoints of each provider, and the key that bounds its output.

use herma_dialect::endpoint::{ENDPOINTS, Endpoint, dialect_of};
use herma_dialect::{Dialect, MaximumKey, OutputBound, Rewrite, outline};
use herma_router::config::{Config, ProviderConfig};
use herma_router::upstream::Upstream;

use super::kit::{configured, up, up_with};

fn all() -> Vec<Upstream> {
    let url = "https://models.example";
    let mut all: Vec<Upstream> =
        ["openai", "anthropic", "compatible"].into_iter().map(|provider| up(provider, url)).collect();
    all.push(up_with("compatible", url, "maximum_key = \"n_predict\""));
    all
}

#[test]
fn the_configuration_and_the_upstream_agree_on_endpoints() {
    for upstream in all() {
        let text = format!(
            "state = \"s\"\n[listen]\naddress = \"127.0.0.1:1\"\n[upstreams.up]\nprovider = \"{}\"\n\
             url = \"https://models.example\"\n[models.m]\nchain = [\"up/m\"]\n",
            upstream.provider()
        );
        let config = Config::parse(&text, "/nowhere/router.toml".as_ref()).unwrap();
        let provider: &ProviderConfig = &config.upstreams["up"].provider;
        assert_eq!(provider.name(), upstream.provider());
        for (endpoint, _) in ENDPOINTS {
            assert_eq!(
                provider.endpoints().contains(endpoint),
                upstream.answers(*endpoint),
                "{} {endpoint:?}",
                provider.name()
            );
        }
    }
}

#[test]
fn every_answer_that_costs_output_is_bounded_in_a_key_that_its_upstream_knows() {
    let names = |upstream: &Upstream, endpoint| upstream.maximum_key(endpoint).map(|(key, _)| key);
    for upstream in all() {
        for (endpoint, _) in ENDPOINTS.iter().filter(|(endpoint, _)| upstream.answers(*endpoint)) {
            let key = names(&upstream, *endpoint);
            assert_eq!(
                key.is_none(),
                matches!(endpoint, Endpoint::Embeddings | Endpoint::CountTokens),
                "{endpoint:?}"
            );
            let Some((key, beside_others)) = upstream.maximum_key(*endpoint) else { continue };
            // The key is one of the dialect, so that a body with it is still read.
            let bound = OutputBound { at_most: 7, key, beside_others };
            let dialect = dialect_of(*endpoint);
            let rewrite = Rewrite { max_output: Some(bound), ..Rewrite::default() };
            let rewritten = outline(dialect, br#"{"model":"m"}"#).unwrap().rewritten(&rewrite);
            assert_eq!(outline(dialect, rewritten.as_bytes()).unwrap().max_output, Some(7), "{rewritten}");
        }
    }
    let [openai, anthropic, compatible, other] = &all()[..] else { panic!() };
    assert_eq!(openai.maximum_key(Endpoint::Chat), Some((MaximumKey::MaxCompletionTokens, false)));
    assert_eq!(anthropic.maximum_key(Endpoint::Messages), Some((MaximumKey::MaxTokens, false)));
    assert_eq!(compatible.maximum_key(Endpoint::Chat), Some((MaximumKey::MaxTokens, true)));
    assert_eq!(other.maximum_key(Endpoint::Chat), Some((MaximumKey::NPredict, true)));
    assert_eq!(dialect_of(Endpoint::Messages), Dialect::Messages);
}

#[test]
fn whether_ambiguous_failures_are_tried_elsewhere_is_configured() {
    assert!(!up("openai", "https://models.example").retry_ambiguous());
    assert!(up_with("openai", "https://models.example", "retry_ambiguous = true").retry_ambiguous());
    let own = configured("provider = \"anthropic\"\nkey = { env = \"KEY\" }", "unused", "").unwrap();
    assert_eq!((own.name(), own.provider()), ("up", "anthropic"));
}
