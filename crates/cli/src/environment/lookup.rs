//! The secrets of the router's configuration that are not in files.

use std::ffi::OsString;

use herma_router::config::Lookup;
use linux_keyutils::{KeyRing, KeyRingIdentifier};

/// The environment, and the keyring that the kernel keeps for the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnvironmentLookup;

impl Lookup for EnvironmentLookup {
    fn variable(&self, name: &str) -> Option<OsString> {
        super::named_by_the_operator(name)
    }

    fn keyring(&self, service: &str, user: &str) -> Result<String, String> {
        let name = format!("{service}:{user}");
        let missing = |what: &str| format!("{what}; add it with `keyctl add user {name} VALUE @u`");
        let ring = KeyRing::from_special_id(KeyRingIdentifier::User, false)
            .map_err(|_| missing("the kernel's keyring of this user cannot be opened"))?;
        let key = ring.search(&name).map_err(|_| missing("there is no such key"))?;
        let value = key.read_to_vec().map_err(|_| "the key cannot be read".to_owned())?;
        String::from_utf8(value).map_err(|_| "the key is not a text".to_owned())
    }
}
