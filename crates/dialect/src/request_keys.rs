//! The keys that a request may have at its top, for each API. An upstream may be a gateway with keys of its own, such as one
//! that names another address or another model: a key that is not listed here is refused and not passed on.

use crate::endpoint::Endpoint;
use crate::reaches_out;

/// `POST /v1/chat/completions`: the API reference of `OpenAI`; `n_predict` of llama.cpp, which herma bounds; and `reasoning` and
/// `thinking`, by which agents set the effort at other providers.
const CHAT: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "n_predict",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
];

/// `POST /v1/completions`.
const COMPLETIONS: &[&str] = &[
    "best_of",
    "echo",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_tokens",
    "model",
    "n",
    "n_predict",
    "presence_penalty",
    "prompt",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "suffix",
    "temperature",
    "top_p",
    "user",
];

/// `POST /v1/embeddings`.
const EMBEDDINGS: &[&str] = &["dimensions", "encoding_format", "input", "model", "user"];

/// `POST /v1/responses`: the API reference of `OpenAI`, and `client_metadata` of Codex.
const RESPONSES: &[&str] = &[
    "client_metadata",
    "context_management",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// `POST /v1/messages`: the API reference of Anthropic, with the betas that only change the answer.
const MESSAGES: &[&str] = &[
    "cache_control",
    "compaction",
    "context_management",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// `POST /v1/messages/count_tokens`.
const COUNT_TOKENS: &[&str] = &[
    "cache_control",
    "context_management",
    "messages",
    "model",
    "output_config",
    "output_format",
    "speed",
    "system",
    "thinking",
    "tool_choice",
    "tools",
];

/// The keys of gateways that choose the provider, its address or key, or make further calls. No configuration of an
/// upstream can let them pass.
pub const RESERVED: &[&str] = &[
    "api_key",
    "api_version",
    "callbacks",
    "context_window_fallback_dict",
    "custom_llm_provider",
    "endpoint",
    "extra_body",
    "extra_headers",
    "extra_query",
    "fallback_models",
    "headers",
    "litellm_metadata",
    "litellm_params",
    "mock_response",
    "model_list",
    "organization",
    "provider",
    "providers",
    "proxy",
    "route",
    "router",
    "thread",
    "transforms",
    "url",
    "user_config",
    "webhook",
    "workspace_id",
];

/// The keys that a request may have at its top, in alphabetical order.
#[must_use]
pub fn request_keys(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        Endpoint::Chat => CHAT,
        Endpoint::Completions => COMPLETIONS,
        Endpoint::Embeddings => EMBEDDINGS,
        Endpoint::Responses => RESPONSES,
        Endpoint::Messages => MESSAGES,
        Endpoint::CountTokens => COUNT_TOKENS,
    }
}

/// Whether herma knows the key in this API: it passes, or a grant decides about it.
pub(super) fn is_listed(endpoint: Endpoint, key: &str) -> bool {
    request_keys(endpoint).binary_search(&key).is_ok()
        || is_governed(key)
        || (endpoint == Endpoint::Responses && key == "prompt")
}

/// Whether a grant decides about the key.
pub(crate) fn is_governed(key: &str) -> bool {
    reaches_out::KEYS.iter().any(|(name, _)| *name == key)
}

/// Whether a key can be added by the configuration of an upstream; if not, why.
#[must_use]
pub fn cannot_be_added(key: &str) -> Option<&'static str> {
    let is_plain = |key: &str| key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if key.is_empty() || key.len() > 64 || !is_plain(key) {
        Some("is not the name of a key")
    } else if RESERVED.contains(&key) {
        Some("decides who answers a call, or where: herma never passes it on")
    } else if is_governed(key) {
        Some("is admitted for a client by `admit`, not for an upstream")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ENDPOINTS;

    #[test]
    fn the_lists_are_in_order_and_hold_no_key_that_is_decided_elsewhere() {
        for (endpoint, path) in ENDPOINTS {
            let keys = request_keys(*endpoint);
            assert!(keys.is_sorted_by(|one, other| one < other), "{path}");
            for key in keys {
                assert!(!is_governed(key) && !RESERVED.contains(key), "{path}: {key}");
                assert!(is_listed(*endpoint, key), "{path}: {key}");
            }
        }
        assert!(RESERVED.is_sorted_by(|one, other| one < other));
    }
}
