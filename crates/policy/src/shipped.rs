//! The shipped schema, and the shipped rules for each stage.

/// The schema of policies.
pub const SCHEMA: &str = include_str!("../policies/schema.cedarschema");

/// The rules, each file by its name.
pub const SHIPPED: [(&str, &str); 3] = [
    ("every-stage.cedar", include_str!("../policies/every-stage.cedar")),
    ("stages-2-and-3.cedar", include_str!("../policies/stages-2-and-3.cedar")),
    ("stages-4-to-6.cedar", include_str!("../policies/stages-4-to-6.cedar")),
];
