//! nginx as a plain proxy: nothing buffered, connections to the upstream kept.

use super::{Contender, NGINX, Program, Site};
use crate::child::Recipe;
use crate::client::Front;

pub(super) const CONTENDER: Contender = Contender::quick(NGINX, Program::InPath("nginx"), prepare);

const CONFIG: &str = "\
daemon off;
worker_processes auto;
pid DIR/nginx.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
    access_log off;
    tcp_nodelay on;
    keepalive_requests 100000000;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    upstream bench { server UPSTREAM; keepalive 512; keepalive_requests 100000000; }
    server {
        listen LISTEN backlog=4096;
        location / {
            proxy_pass http://bench;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
            proxy_read_timeout 600s;
        }
    }
}
";

fn prepare(site: &Site<'_>) -> (Recipe, Front) {
    let config = CONFIG
        .replace("DIR", &site.dir.to_string_lossy())
        .replace("UPSTREAM", &site.upstream.to_string())
        .replace("LISTEN", &site.listen.to_string());
    let args =
        ["-p".into(), site.dir.into(), "-e".into(), "stderr".into(), "-c".into(), site.file("nginx.conf")];
    (site.recipe::<1>(args, [("nginx.conf", config)]), Front::new(site.listen, "bench"))
}
