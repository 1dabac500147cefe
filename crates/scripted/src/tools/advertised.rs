//! The tools that a request advertises, as the mapping sees them.

use serde_json::Value;

use herma_dialect::{ModelRequest, Tool, ToolKind};

/// One advertised tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advertised<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// How it is called.
    pub(super) form: Form<'a>,
}

/// How a tool is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    /// With arguments by this JSON schema.
    Function(&'a Value),
    /// With a text.
    Freeform,
    /// As the provider defines it; this is its type.
    Provider(&'a str),
}

/// All that a client executes, in the order in which it is advertised.
pub(super) fn all(request: &ModelRequest) -> Vec<Advertised<'_>> {
    request.tools.iter().map(seen).collect()
}

fn seen(tool: &Tool) -> Advertised<'_> {
    let form = match &tool.kind {
        ToolKind::Function { parameters } => Form::Function(parameters),
        ToolKind::Custom => Form::Freeform,
        ToolKind::BuiltIn { of } => Form::Provider(of),
    };
    Advertised { name: &tool.name, form }
}
