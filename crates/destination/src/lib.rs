//! destination
