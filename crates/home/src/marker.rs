//! The marker file of a home.

/// The file that marks a directory as a herma home.
pub const MARKER: &str = "herma-home";
/// The content of the marker: the format of the home.
pub const MARKER_TEXT: &str = "herma-home 1\n";
