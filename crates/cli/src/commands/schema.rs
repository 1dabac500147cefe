//! `herma schema`: the JSON schemas of everything that herma writes.

use std::process::ExitCode;

use crate::args;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::SchemasOutput;
use crate::schemas::SCHEMAS;
use crate::screen::Screen;

pub(crate) fn schema(args: &args::Schema, screen: &Screen) -> Ended {
    match &args.name {
        Some(name) => {
            let schema = SCHEMAS.iter().find(|s| s.name == name).ok_or_else(|| {
                Failure::bad_input(format!("there is no schema `{name}`"))
                    .hint("`herma schema` lists the names")
            })?;
            screen.value(&schema.schema())?;
        }
        None if screen.is_json() => {
            let schemas = SCHEMAS.iter().map(|s| (s.name, s.what)).collect();
            screen.value(&SchemasOutput { schema: "herma.schemas/v1", schemas })?;
        }
        None => {
            for schema in SCHEMAS {
                screen.line(format_args!("{:16} {}", schema.name, schema.what));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
