//! The built-in forbidden paths: one table that people can read, and from which the docs are made.

/// One built-in forbidden path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenPath {
    /// A gitignore-style glob; letters of either case match each other.
    pub pattern: &'static str,
    /// Why nobody wants an agent to change it unasked.
    pub why: &'static str,
    /// Whether a contract's `lift_paths` can lift it.
    pub lift: Lift,
}

/// Whether a contract can lift a built-in forbidden path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lift {
    /// `lift_paths` lifts it where it names it.
    ByContract,
    /// Nothing lifts it.
    Never,
}

const fn never(pattern: &'static str, why: &'static str) -> ForbiddenPath {
    ForbiddenPath { pattern, why, lift: Lift::Never }
}

const fn liftable(pattern: &'static str, why: &'static str) -> ForbiddenPath {
    ForbiddenPath { pattern, why, lift: Lift::ByContract }
}

const SECRET: &str = "it holds secrets";
const ENVIRONMENT: &str = "env files hold secrets and settings of one machine";
const CREDENTIAL: &str = "it holds credentials";
const DEPLOY: &str = "it decides what goes live";
const INFRA: &str = "it describes running infrastructure";
const WORKFLOW: &str = "CI runs it with the repository's credentials";
const LOCK: &str = "a lock file pins what is downloaded and run";
const VENDORED: &str = "vendored sources belong to others";
const AGENT: &str = "it instructs or configures the next agent";
const EDITOR: &str = "an editor runs it when the folder is opened";
const SHELL: &str = "a shell runs it when the folder is entered";
const HOOK: &str = "git runs it on commit, push or checkout";
const GIT_CONFIG: &str = "it changes what git runs or fetches";

/// Every built-in forbidden path.
pub const BUILT_IN: &[ForbiddenPath] = &[
    never(".git", "it is git's own state, with hooks and configuration that run by themselves"),
    never(".herma", "it is herma's own state"),
    // Secrets.
    liftable("secrets", SECRET),
    liftable("secrets.*", SECRET),
    liftable(".secrets", SECRET),
    liftable("*.pem", SECRET),
    liftable("*.key", SECRET),
    liftable("*.p12", SECRET),
    liftable("*.pfx", SECRET),
    liftable("id_rsa", SECRET),
    liftable("id_ecdsa", SECRET),
    liftable("id_ed25519", SECRET),
    // Env files.
    liftable(".env", ENVIRONMENT),
    liftable(".env.*", ENVIRONMENT),
    // Credentials.
    liftable("credentials", CREDENTIAL),
    liftable("credentials.*", CREDENTIAL),
    liftable(".git-credentials", CREDENTIAL),
    liftable(".netrc", CREDENTIAL),
    liftable(".npmrc", CREDENTIAL),
    liftable(".pypirc", CREDENTIAL),
    liftable(".aws", CREDENTIAL),
    liftable(".gnupg", CREDENTIAL),
    liftable(".kube", CREDENTIAL),
    liftable(".ssh", CREDENTIAL),
    liftable("**/.docker/config.json", CREDENTIAL),
    // Deploy.
    liftable("deploy", DEPLOY),
    liftable("deploy.*", DEPLOY),
    liftable("deployment/", DEPLOY),
    liftable("deployments/", DEPLOY),
    // Infra.
    liftable("infra", INFRA),
    liftable("infrastructure/", INFRA),
    liftable("terraform/", INFRA),
    // CI workflows.
    liftable("**/.github/workflows", WORKFLOW),
    liftable("**/.github/actions", WORKFLOW),
    liftable("**/.gitea/workflows", WORKFLOW),
    liftable("**/.forgejo/workflows", WORKFLOW),
    liftable(".gitlab-ci.yml", WORKFLOW),
    liftable(".gitlab-ci.yaml", WORKFLOW),
    liftable("**/.gitlab/ci", WORKFLOW),
    liftable(".circleci", WORKFLOW),
    liftable(".buildkite", WORKFLOW),
    liftable(".woodpecker", WORKFLOW),
    liftable(".woodpecker.yml", WORKFLOW),
    liftable(".woodpecker.yaml", WORKFLOW),
    liftable(".drone.yml", WORKFLOW),
    liftable(".travis.yml", WORKFLOW),
    liftable(".appveyor.yml", WORKFLOW),
    liftable("appveyor.yml", WORKFLOW),
    liftable(".cirrus.yml", WORKFLOW),
    liftable("azure-pipelines.yml", WORKFLOW),
    liftable("azure-pipelines.yaml", WORKFLOW),
    liftable("bitbucket-pipelines.yml", WORKFLOW),
    liftable("Jenkinsfile", WORKFLOW),
    // Lock files.
    liftable("Cargo.lock", LOCK),
    liftable("package-lock.json", LOCK),
    liftable("npm-shrinkwrap.json", LOCK),
    liftable("yarn.lock", LOCK),
    liftable("pnpm-lock.yaml", LOCK),
    liftable("bun.lock", LOCK),
    liftable("bun.lockb", LOCK),
    liftable("deno.lock", LOCK),
    liftable("poetry.lock", LOCK),
    liftable("uv.lock", LOCK),
    liftable("pdm.lock", LOCK),
    liftable("Pipfile.lock", LOCK),
    liftable("pylock.toml", LOCK),
    liftable("pylock.*.toml", LOCK),
    liftable("Gemfile.lock", LOCK),
    liftable("go.sum", LOCK),
    liftable("go.work.sum", LOCK),
    liftable("composer.lock", LOCK),
    liftable("mix.lock", LOCK),
    liftable("pubspec.lock", LOCK),
    liftable("Podfile.lock", LOCK),
    liftable("Package.resolved", LOCK),
    liftable("packages.lock.json", LOCK),
    liftable("gradle.lockfile", LOCK),
    liftable("flake.lock", LOCK),
    liftable("conan.lock", LOCK),
    liftable(".terraform.lock.hcl", LOCK),
    liftable("MODULE.bazel.lock", LOCK),
    // Vendored trees.
    liftable("vendor/", VENDORED),
    liftable("third_party/", VENDORED),
    liftable("node_modules/", VENDORED),
    // What runs or instructs by itself.
    liftable(".claude", AGENT),
    liftable(".codex", AGENT),
    liftable(".opencode", AGENT),
    liftable("opencode.json", AGENT),
    liftable("opencode.jsonc", AGENT),
    liftable(".pi", AGENT),
    liftable(".hermes", AGENT),
    liftable(".hermes.md", AGENT),
    liftable("HERMES.md", AGENT),
    liftable(".mcp.json", AGENT),
    liftable("CLAUDE.md", AGENT),
    liftable("CLAUDE.local.md", AGENT),
    liftable("AGENTS.md", AGENT),
    liftable("AGENTS.override.md", AGENT),
    liftable(".vscode", EDITOR),
    liftable(".idea", EDITOR),
    liftable(".envrc", SHELL),
    liftable(".husky", HOOK),
    liftable(".githooks", HOOK),
    liftable(".pre-commit-config.yaml", HOOK),
    liftable(".gitattributes", GIT_CONFIG),
    liftable(".gitmodules", GIT_CONFIG),
];

/// Why a built-in pattern is forbidden.
pub(crate) fn why(pattern: &str) -> &'static str {
    BUILT_IN.iter().find(|path| path.pattern == pattern).map_or("it is on the built-in list", |path| path.why)
}

/// The patterns of the built-in list that can, or cannot, be lifted.
pub(crate) fn patterns(lift: Lift) -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().filter(move |path| path.lift == lift).map(|path| path.pattern)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_pattern_stands_there_once() {
        let folded: BTreeSet<_> = BUILT_IN.iter().map(|path| path.pattern.to_ascii_lowercase()).collect();
        assert_eq!(folded.len(), BUILT_IN.len());
    }

    #[test]
    fn only_the_two_states_are_never_lifted() {
        assert_eq!(patterns(Lift::Never).collect::<Vec<_>>(), [".git", ".herma"]);
    }
}
