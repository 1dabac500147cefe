//! The contract that `herma contract new` and `herma init` start from.

use super::fields::{ContractId, Target};

/// A contract to fill in. It parses as it is, so that a person changes a working file.
#[must_use]
pub fn template(id: &ContractId, target: &Target) -> String {
    let (target, stage) = match target {
        Target::Fixture(name) => (format!("{{ fixture: {name} }}"), 2),
        Target::Repo { repo, base } => {
            let base = base.as_ref().map(|b| format!(", base: {b}")).unwrap_or_default();
            (format!("{{ repo: {repo}{base} }}"), 3)
        }
    };
    format!(
        "---\n\
         id: {id}\n\
         title: say in one line what is wrong\n\
         target: {target}\n\
         stage: {stage}\n\
         allowed_paths: [\"src/**\"]        # gitignore-style; deny wins over allow\n\
         forbidden_paths: []              # added to the built-in list (docs/contract.md)\n\
         verify: [\"sh test.sh\"]           # must exit with 0 on a fresh checkout with the patch\n\
         success: [say what a reader of the result should find]\n\
         risk: low\n\
         limits: {{ total: 20m, startup: 60s, idle: 5m }}\n\
         ---\n\
         Say what the agent should do, as you would say it to a colleague who has never seen the code.\n"
    )
}
