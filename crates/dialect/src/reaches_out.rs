//! The parts of a request that make the upstream access something by itself, which would bypass egress.

use std::fmt;

/// How an upstream would reach out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// A tool that the upstream runs, or one that herma does not know to be run by the client.
    HostedTool,
    /// A remote MCP server.
    RemoteMcp,
    /// A URL of an image, a file or a document that the upstream would fetch.
    RemoteUrl,
    /// A file stored at the upstream.
    StoredFile,
    /// A conversation, a response or a prompt that is stored at the upstream, or is to be.
    StoredConversation,
    /// A call that goes on after its answer.
    Background,
    /// Models besides the one that is asked.
    OtherModels,
}

impl Reach {
    fn is(self) -> &'static str {
        match self {
            Self::HostedTool => "a tool that is not run by the client",
            Self::RemoteMcp => "a remote MCP server",
            Self::RemoteUrl => "a remote URL",
            Self::StoredFile => "a file stored with the provider",
            Self::StoredConversation => "a conversation stored with the provider",
            Self::Background => "a background call",
            Self::OtherModels => "a choice of other models",
        }
    }
}

/// One place in a request that makes the upstream reach out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachesOut {
    /// How.
    pub reach: Reach,
    /// Where in the body, such as `tools[0]`.
    pub path: String,
    /// Which, where it has a name: the type of a tool.
    pub name: Option<String>,
}

impl fmt::Display for ReachesOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        write!(f, " is {}", self.reach.is())
    }
}

/// The keys at the top of a body that make the upstream reach out if they are set, in whatever dialect. Servers that
/// speak several dialects do not always look which of them was called.
pub(super) const KEYS: &[(&str, Reach)] = &[
    ("api_base", Reach::RemoteUrl),
    ("background", Reach::Background),
    ("base_url", Reach::RemoteUrl),
    ("container", Reach::HostedTool),
    ("conversation", Reach::StoredConversation),
    ("fallbacks", Reach::OtherModels),
    ("mcp_servers", Reach::RemoteMcp),
    ("models", Reach::OtherModels),
    ("plugins", Reach::HostedTool),
    ("previous_response_id", Reach::StoredConversation),
    ("web_search_options", Reach::HostedTool),
];

/// Whether a key, in whatever part of a body, names something to fetch or to call.
pub(super) fn names_url(key: &str) -> bool {
    const ENDS: [&str; 7] = ["url", "urls", "uri", "uris", "api_base", "endpoint", "webhook"];
    let key = key.to_ascii_lowercase();
    ENDS.iter().any(|end| key.ends_with(end))
}
