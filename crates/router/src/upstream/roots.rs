//! The trust anchors of TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::problem::BadUpstream;

/// TLS that trusts the system's roots, and those in a file where one is named.
pub(super) fn trusting(upstream: &str, roots: Option<&Path>) -> Result<ClientConfig, BadUpstream> {
    let mut store = RootCertStore::empty();
    // Unreadable files are ignored; only an empty store is an error.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = roots {
        add(&mut store, file).map_err(|problem| BadUpstream::Roots {
            upstream: upstream.to_owned(),
            file: file.to_owned(),
            problem,
        })?;
    }
    if store.is_empty() {
        return Err(BadUpstream::NoRoots(upstream.to_owned()));
    }
    with(store, upstream)
}

/// TLS without trust anchors, for an upstream without TLS.
pub(super) fn trusting_nobody(upstream: &str) -> Result<ClientConfig, BadUpstream> {
    with(RootCertStore::empty(), upstream)
}

fn with(store: RootCertStore, upstream: &str) -> Result<ClientConfig, BadUpstream> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| BadUpstream::Tls(upstream.to_owned()))?;
    Ok(config.with_root_certificates(store).with_no_client_auth())
}

/// Adds every certificate of a file. A broken one is an error: it may be the one that is needed.
fn add(store: &mut RootCertStore, file: &Path) -> Result<(), &'static str> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(|_| "cannot be read")?;
    let mut added = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|_| "are not PEM")?;
        store.add(certificate).map_err(|_| "have one that is not a certificate")?;
        added += 1;
    }
    if added == 0 { Err("are none; expected `-----BEGIN CERTIFICATE-----`") } else { Ok(()) }
}
