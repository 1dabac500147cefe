//! TLS with roots of one's own, and both versions of HTTP.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use herma_dialect::endpoint::Endpoint;
use herma_router::upstream::{BadUpstream, NotReached, SendError, Upstream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::kit::{KEY, SHORT, ask, configured, http, server, up_with};

/// An authority, and a server's certificate of it for this name.
fn certified(name: &str) -> (String, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    (authority.pem(), config)
}

/// Answers which version was spoken, and with what.
async fn tell(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let length = body.collect().await.unwrap().to_bytes().len();
    let key = parts.headers["authorization"].to_str().unwrap().trim_start_matches("Bearer ") == KEY;
    let told = format!("{:?} {} {} {length} {key}", parts.version, parts.method, parts.uri.path());
    Ok(Response::new(Full::new(Bytes::from(told))))
}

async fn speak(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, two: bool) {
    // How a connection ends is the client's affair.
    if two {
        drop(
            http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(io), service_fn(tell))
                .await,
        );
    } else {
        drop(http1::Builder::new().serve_connection(TokioIo::new(io), service_fn(tell)).await);
    }
}

/// A server for TLS that offers these protocols, and its authority.
async fn secured(name: &str, offers: &[&str]) -> (SocketAddr, String) {
    let (authority, mut config) = certified(name);
    config.alpn_protocols = offers.iter().map(|offer| offer.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = server(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            speak(stream, two).await;
        }
    })
    .await;
    (address, authority)
}

/// An upstream that trusts this authority too.
fn trusting(authority: &str, dir: &Path, port: u16, more: &str) -> Upstream {
    let roots = dir.join("roots.pem");
    fs::write(&roots, authority).unwrap();
    let roots = roots.to_str().unwrap();
    up_with("openai", &format!("https://localhost:{port}"), &format!("roots = \"{roots}\"\n{more}"))
}

async fn answered(upstream: &Upstream) -> String {
    String::from_utf8(ask(upstream, Endpoint::Chat).await.unwrap().1).unwrap()
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_as_agreed() {
    let dir = tempfile::tempdir().unwrap();
    for (offers, wants, version) in [
        (&["h2", "http/1.1"][..], "", "HTTP/2.0"),
        (&["h2", "http/1.1"], "http = \"2\"", "HTTP/2.0"),
        (&["h2", "http/1.1"], "http = \"1.1\"", "HTTP/1.1"),
        (&["http/1.1"], "", "HTTP/1.1"),
        (&[], "", "HTTP/1.1"),
    ] {
        let (address, authority) = secured("localhost", offers).await;
        let upstream = trusting(&authority, dir.path(), address.port(), wants);
        for _ in 0..3 {
            assert_eq!(answered(&upstream).await, format!("{version} POST /v1/chat/completions 61 true"));
        }
    }
}

#[tokio::test]
async fn http_2_needs_no_tls_where_the_operator_says_so() {
    let address = server(|_, stream| speak(stream, true)).await;
    let upstream = up_with("openai", &http(address), "http = \"2\"");
    assert_eq!(answered(&upstream).await, "HTTP/2.0 POST /v1/chat/completions 61 true");
}

#[tokio::test]
async fn a_server_without_the_wanted_version_is_not_reached() {
    let dir = tempfile::tempdir().unwrap();
    let (address, authority) = secured("localhost", &["http/1.1"]).await;
    let upstream = trusting(&authority, dir.path(), address.port(), "http = \"2\"");
    assert_eq!(ask(&upstream, Endpoint::Chat).await, Err(SendError::NotReached(NotReached::TlsFailed)));
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted() {
    let (address, _) = secured("localhost", &["h2"]).await;
    let upstream = up_with("openai", &format!("https://localhost:{}", address.port()), "");
    let error = ask(&upstream, Endpoint::Chat).await.unwrap_err();
    assert_eq!(error, SendError::NotReached(NotReached::TlsFailed));
    let said = format!("{error} {error:?}");
    assert!(!said.contains("localhost") && !said.contains(&address.port().to_string()), "{said}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let (address, authority) = secured("other.example", &["h2"]).await;
    let upstream = trusting(&authority, dir.path(), address.port(), "");
    assert_eq!(ask(&upstream, Endpoint::Chat).await, Err(SendError::NotReached(NotReached::TlsFailed)));
}

#[tokio::test]
async fn roots_that_cannot_be_used_are_said_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("roots.pem");
    let start = |content: Option<&str>| {
        if let Some(content) = content {
            fs::write(&file, content).unwrap();
        }
        let lines = format!(
            "provider = \"openai\"\nkey = {{ env = \"KEY\" }}\nurl = {{ env = \"URL\" }}\nroots = \"{}\"",
            file.to_str().unwrap()
        );
        match configured(&lines, "https://models.canary.example", SHORT) {
            Err(BadUpstream::Roots { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(start(None), "cannot be read");
    assert_eq!(start(Some("")), "are none; expected `-----BEGIN CERTIFICATE-----`");
    let not_base64 = "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n";
    assert_eq!(start(Some(not_base64)), "are not PEM");
    let not_a_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(start(Some(not_a_certificate)), "have one that is not a certificate");
}
