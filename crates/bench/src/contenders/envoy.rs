//! Envoy as a plain proxy.

use std::ffi::OsString;

use super::{Contender, ENVOY, Program, Site};
use crate::child::Recipe;
use crate::client::Front;

pub(super) const CONTENDER: Contender =
    Contender { starts_at_once: false, ..Contender::quick(ENVOY, Program::InPath("envoy"), prepare) };

const CONFIG: &str = r#"static_resources:
  listeners:
  - name: bench
    address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          route_config:
            virtual_hosts:
            - name: bench
              domains: ["*"]
              routes:
              - match: { prefix: "/" }
                route: { cluster: upstream, timeout: 0s }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters:
  - name: upstream
    type: STATIC
    connect_timeout: 10s
    circuit_breakers:
      thresholds: [{ max_connections: 8192, max_pending_requests: 8192, max_requests: 8192 }]
    load_assignment:
      cluster_name: upstream
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } }
"#;

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let config = CONFIG
        .replace("LISTEN", &site.listen.port().to_string())
        .replace("UPSTREAM", &site.upstream.port().to_string());
    let args: [OsString; 5] = [
        "-c".into(),
        site.file("envoy.yaml"),
        "--log-level".into(),
        "error".into(),
        "--disable-hot-restart".into(),
    ];
    (site.recipe(args, [("envoy.yaml", config)]), Front::new(site.listen, "bench"))
}
