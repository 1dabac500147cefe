//! The outward actions that an agent can attempt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something an agent can try to do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Send commits to a remote.
    Push,
    /// Merge branches.
    Merge,
    /// Put something into production.
    Deploy,
    /// Close something that others opened.
    Close,
    /// Open a pull request.
    PrOpen,
    /// Close an issue.
    IssueClose,
    /// Publish a package, a page or a message.
    PublicPublication,
    /// Change a credential.
    CredentialChange,
    /// Change vendored sources.
    VendorSourceMutation,
    /// Make a tag.
    Tag,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::Close,
        Self::PrOpen,
        Self::IssueClose,
        Self::PublicPublication,
        Self::CredentialChange,
        Self::VendorSourceMutation,
        Self::Tag,
    ];

    /// The actions that every contract forbids.
    pub const BUILT_IN: [Self; 9] = [
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::Close,
        Self::PrOpen,
        Self::IssueClose,
        Self::PublicPublication,
        Self::CredentialChange,
        Self::VendorSourceMutation,
    ];

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Merge => "merge",
            Self::Deploy => "deploy",
            Self::Close => "close",
            Self::PrOpen => "pr_open",
            Self::IssueClose => "issue_close",
            Self::PublicPublication => "public_publication",
            Self::CredentialChange => "credential_change",
            Self::VendorSourceMutation => "vendor_source_mutation",
            Self::Tag => "tag",
        }
    }
}
