//! Values that must not be printed.

use std::fmt;

/// A value that has no `Display`, no `Serialize` and a `Debug` that shows nothing.
#[derive(Clone)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value that must not be printed.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Each call of this is a place to look at in review.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
