//! Which walls stand: all of them. Only a build for tests can leave one out, to see that a probe then misses it.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<W> {
    #[cfg(feature = "test-switches")]
    off: Option<W>,
    #[cfg(not(feature = "test-switches"))]
    all: std::marker::PhantomData<W>,
}

#[cfg(feature = "test-switches")]
impl<W> Default for Standing<W> {
    fn default() -> Self {
        Self { off: None }
    }
}

#[cfg(feature = "test-switches")]
impl<W: Copy + PartialEq> Standing<W> {
    pub(crate) fn without(wall: W) -> Self {
        Self { off: Some(wall) }
    }

    pub(crate) fn has(self, wall: W) -> bool {
        self.off != Some(wall)
    }

    pub(crate) fn left_out(self) -> Option<W> {
        self.off
    }
}

#[cfg(not(feature = "test-switches"))]
impl<W> Default for Standing<W> {
    fn default() -> Self {
        Self { all: std::marker::PhantomData }
    }
}

#[cfg(not(feature = "test-switches"))]
impl<W> Standing<W> {
    #[allow(clippy::unused_self, reason = "in this build there is nothing to ask")]
    pub(crate) fn has(self, _wall: W) -> bool {
        true
    }
}
