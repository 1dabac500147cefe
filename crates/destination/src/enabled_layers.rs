//! The isolation layers that are enabled: all of them. Only a test build can disable one, to prove that a probe
//! detects it.

#[derive(Clone, Copy, Debug)]
pub(crate) struct EnabledLayers<W> {
    #[cfg(feature = "test-switches")]
    off: Option<W>,
    #[cfg(not(feature = "test-switches"))]
    all: std::marker::PhantomData<W>,
}

#[cfg(feature = "test-switches")]
impl<W> Default for EnabledLayers<W> {
    fn default() -> Self {
        Self { off: None }
    }
}

#[cfg(feature = "test-switches")]
impl<W: Copy + PartialEq> EnabledLayers<W> {
    pub(crate) fn without(layer: W) -> Self {
        Self { off: Some(layer) }
    }

    pub(crate) fn has(self, layer: W) -> bool {
        self.off != Some(layer)
    }

    pub(crate) fn left_out(self) -> Option<W> {
        self.off
    }
}

#[cfg(not(feature = "test-switches"))]
impl<W> Default for EnabledLayers<W> {
    fn default() -> Self {
        Self { all: std::marker::PhantomData }
    }
}

#[cfg(not(feature = "test-switches"))]
impl<W> EnabledLayers<W> {
    #[allow(clippy::unused_self, reason = "in this build there is nothing to ask")]
    pub(crate) fn has(self, _layer: W) -> bool {
        true
    }
}
