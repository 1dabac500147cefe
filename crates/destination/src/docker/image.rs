//! An image reference pinned by digest.

use std::fmt;
use std::str::FromStr;

use herma_core::Digest;
use serde::{Deserialize, Serialize};

/// An image by digest: `name@sha256:...` for a registry, or `sha256:...` for a local image id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImagePin(String);

/// The image is not pinned by digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the image `{0}` is not pinned: a tag can be moved to another image. Name it as `name@sha256:...` (`docker image \
     inspect --format '{{{{index .RepoDigests 0}}}}' {0}`) or, if it was built here, as `sha256:...` (`docker image \
     inspect --format '{{{{.Id}}}}' {0}`)"
)]
pub struct UnpinnedImage(String);

impl ImagePin {
    /// The pin as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names an image of a registry, which can be pulled.
    pub(super) fn can_be_pulled(&self) -> bool {
        self.0.contains('@')
    }
}

impl FromStr for ImagePin {
    type Err = UnpinnedImage;

    fn from_str(text: &str) -> Result<Self, UnpinnedImage> {
        let (name, digest) = text.split_once('@').map_or((None, text), |(name, digest)| (Some(name), digest));
        // The name becomes part of a request to the daemon.
        let plain = |name: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "./_-:".contains(c);
            !name.is_empty()
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.chars().all(known)
        };
        let sound = digest.parse::<Digest>().is_ok()
            && name.is_none_or(|name| {
                plain(name) && !name.split('/').any(|part| part == ".." || part.is_empty())
            });
        sound.then(|| Self(text.to_owned())).ok_or_else(|| UnpinnedImage(text.to_owned()))
    }
}

impl TryFrom<String> for ImagePin {
    type Error = UnpinnedImage;

    fn try_from(text: String) -> Result<Self, UnpinnedImage> {
        text.parse()
    }
}

impl From<ImagePin> for String {
    fn from(pin: ImagePin) -> Self {
        pin.0
    }
}

impl fmt::Display for ImagePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_image_by_digest_is_pinned() {
        let digest = Digest::of(b"image");
        for good in [digest.to_string(), format!("team/agent@{digest}"), format!("host:5000/a/b:v1@{digest}")]
        {
            assert_eq!(good.parse::<ImagePin>().unwrap().as_str(), good);
        }
        let cut = &digest.to_string()[..40];
        for bad in ["", "agent", "agent:v1", cut, "agent@sha256:12", "@", "a b@c"] {
            assert!(bad.parse::<ImagePin>().is_err(), "{bad}");
        }
        for bad in [
            format!("@{digest}"),
            format!("../x@{digest}"),
            format!("a?b@{digest}"),
            format!("a//b@{digest}"),
        ] {
            assert!(bad.parse::<ImagePin>().is_err(), "{bad}");
        }
        let said = "agent:v1".parse::<ImagePin>().unwrap_err().to_string();
        assert!(said.contains("not pinned") && said.contains("{{.Id}}"), "{said}");
    }
}
