//! The environment variables by which an agent reaches the run's router.

/// The path of the router's socket.
pub const SOCKET_VARIABLE: &str = "HERMA_ROUTER_SOCKET";

/// The token of the run, which is no secret of a provider and is valid for this run only.
pub const TOKEN_VARIABLE: &str = "HERMA_ROUTER_TOKEN";

/// The model of the contract.
pub const MODEL_VARIABLE: &str = "HERMA_ROUTER_MODEL";
