//! The router: a reverse proxy to models. It authenticates, admits, budgets, forwards and records every call, in the API
//! dialects of `OpenAI` and Anthropic.

pub mod audit;
pub mod budget;
pub mod config;
pub mod grant;
pub mod probe;
pub mod service;
pub mod upstream;

pub use herma_dialect::endpoint;
