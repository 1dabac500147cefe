//! Which walls stand: all of them. Only a build for tests can leave one out, to see that a probe then misses it.

use crate::wall::Wall;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    #[cfg(feature = "test-switches")]
    off: Option<Wall>,
}

#[cfg(feature = "test-switches")]
impl Standing {
    pub(super) fn without(wall: Wall) -> Self {
        Self { off: Some(wall) }
    }

    pub(super) fn has(self, wall: Wall) -> bool {
        self.off != Some(wall)
    }
}

#[cfg(not(feature = "test-switches"))]
impl Standing {
    #[allow(clippy::unused_self, reason = "in this build there is nothing to ask")]
    pub(super) fn has(self, _wall: Wall) -> bool {
        true
    }
}
