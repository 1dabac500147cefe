//! What herma ships: the schema, and the rules for each stage.

/// What policies speak of.
pub const SCHEMA: &str = include_str!("../policies/schema.cedarschema");

/// The rules, each file by its name.
pub const SHIPPED: [(&str, &str); 3] = [
    ("every-stage.cedar", include_str!("../policies/every-stage.cedar")),
    ("stages-2-and-3.cedar", include_str!("../policies/stages-2-and-3.cedar")),
    ("stages-4-to-6.cedar", include_str!("../policies/stages-4-to-6.cedar")),
];
