//! The known shapes of commands, as readable tables. Lists of words are separated by blanks.

use herma_core::contract::Action;

/// A shape of command: the program, what must follow it, and what it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandShape {
    /// The action.
    pub(crate) action: Action,
    /// The programs.
    pub(crate) programs: &'static str,
    /// One of these must follow. A word that starts with `-` may be anywhere; the others come first and in order,
    /// options aside. `*` is any word.
    pub(crate) followed_by: &'static [&'static str],
}

const fn shape(action: Action, programs: &'static str, followed_by: &'static [&'static str]) -> CommandShape {
    CommandShape { action, programs, followed_by }
}

/// Nothing has to follow.
const ALONE: &[&str] = &[""];

/// Every shape.
pub(crate) const SHAPES: &[CommandShape] = &[
    shape(Action::Push, "git hg jj", &["push", "git push", "send-pack", "svn dcommit"]),
    shape(Action::Push, "gh", &["repo sync"]),
    // A pull is a fetch and a merge.
    shape(Action::Merge, "git hg", &["merge", "pull"]),
    shape(Action::Merge, "gh", &["pr merge"]),
    shape(Action::Merge, "glab", &["mr merge"]),
    shape(Action::Tag, "git hg", &["tag *"]),
    shape(Action::Tag, "gh glab", &["release create"]),
    shape(Action::PrOpen, "gh", &["pr create", "pr new"]),
    shape(Action::PrOpen, "glab", &["mr create", "mr new"]),
    shape(Action::PrOpen, "hub", &["pull-request"]),
    shape(Action::PrOpen, "git", &["request-pull"]),
    shape(Action::Close, "gh", &["pr close"]),
    shape(Action::Close, "glab", &["mr close"]),
    shape(Action::IssueClose, "gh glab", &["issue close", "issue delete"]),
    // Packages and images.
    shape(Action::PublicPublication, "npm pnpm yarn bun lerna vsce", &["publish", "npm publish"]),
    shape(Action::PublicPublication, "cargo poetry uv flit hatch pdm gradle gradlew", &["publish"]),
    shape(Action::PublicPublication, "twine", &["upload"]),
    shape(Action::PublicPublication, "gem oras crane helm docker podman", &["push", "image push"]),
    shape(Action::PublicPublication, "dotnet", &["nuget push"]),
    shape(Action::PublicPublication, "mvn mvnw", &["deploy"]),
    shape(Action::PublicPublication, "semantic-release gh-pages", ALONE),
    // Pages and messages.
    shape(Action::PublicPublication, "gh glab", &["release create", "release upload", "issue create"]),
    shape(Action::PublicPublication, "gh", &["gist create", "issue comment", "pr comment", "pr review"]),
    shape(Action::PublicPublication, "glab", &["snippet create", "issue note", "mr note"]),
    shape(Action::PublicPublication, "git", &["send-email"]),
    // Clusters and clouds.
    shape(Action::Deploy, "kubectl oc", &["apply", "create", "delete", "edit", "patch", "replace"]),
    shape(Action::Deploy, "kubectl oc", &["rollout", "scale", "set", "expose", "run"]),
    shape(Action::Deploy, "terraform tofu terragrunt", &["apply", "destroy", "import"]),
    shape(Action::Deploy, "helm", &["install", "upgrade", "uninstall", "rollback"]),
    shape(Action::Deploy, "helmfile", &["apply", "sync", "destroy"]),
    shape(Action::Deploy, "pulumi railway", &["up", "destroy"]),
    shape(Action::Deploy, "cdk serverless sls sam firebase netlify vercel wrangler", &["deploy", "destroy"]),
    shape(Action::Deploy, "fly flyctl eb cap kamal", &["deploy"]),
    shape(Action::Deploy, "vercel", &["--prod"]),
    shape(Action::Deploy, "docker", &["stack deploy", "service update"]),
    shape(Action::Deploy, "gcloud", &["app deploy", "run deploy", "functions deploy"]),
    shape(Action::Deploy, "aws", &["cloudformation deploy", "s3 sync", "s3 cp"]),
    shape(Action::Deploy, "argocd", &["app sync"]),
    shape(Action::Deploy, "gh", &["workflow run"]),
    shape(Action::Deploy, "ansible-playbook", ALONE),
    // Logins and keys.
    shape(Action::CredentialChange, "gh glab gcloud", &["auth", "secret", "ssh-key", "gpg-key"]),
    shape(Action::CredentialChange, "git", &["credential", "credential-store", "credential-cache"]),
    shape(Action::CredentialChange, "passwd chpasswd htpasswd ssh-keygen ssh-add ssh-copy-id", ALONE),
    shape(Action::CredentialChange, "gpg gpg2", &["--gen-key", "--full-generate-key", "--full-gen-key"]),
    shape(Action::CredentialChange, "gpg gpg2", &["--quick-generate-key", "--quick-gen-key", "--import"]),
    shape(Action::CredentialChange, "npm cargo docker podman helm vercel wrangler", &["login", "logout"]),
    shape(Action::CredentialChange, "az heroku fly flyctl netlify firebase", &["login", "logout"]),
    shape(Action::CredentialChange, "npm", &["adduser", "token"]),
    shape(Action::CredentialChange, "aws", &["configure"]),
    shape(Action::CredentialChange, "kubectl oc", &["config set-credentials"]),
    shape(Action::VendorSourceMutation, "cargo", &["vendor"]),
    shape(Action::VendorSourceMutation, "go", &["mod vendor", "work vendor"]),
    shape(Action::VendorSourceMutation, "git", &["subtree", "submodule add", "submodule update"]),
];

/// Commands that only read or undo: the program, its first word, and the options that make it so.
pub(crate) const HARMLESS: &[(&str, &str, &str)] = &[
    ("git", "tag", "-l --list -n --contains --no-contains --points-at --merged --no-merged -v --verify"),
    ("git", "merge", "--abort"),
];

/// Options with a separate value, and their programs.
pub(crate) const TAKE_A_VALUE: &[(&str, &str)] = &[
    ("git", "-C -c --git-dir --work-tree --namespace --exec-path --config-env"),
    ("gh glab", "-R --repo --hostname"),
    ("hg jj", "-R --repository --cwd --config"),
    ("npm pnpm yarn bun lerna", "--prefix --cwd -C --dir -w --workspace --filter -F --registry"),
    ("cargo", "-C -Z --config --color"),
    ("poetry uv", "-C --directory --project -P"),
    ("docker podman", "--context -c -H --host --config -l --log-level"),
    ("kubectl oc helm helmfile", "-n --namespace --context --kube-context --kubeconfig --cluster --user"),
    ("kubectl oc helm helmfile", "-s --server --as -f --file -e --environment"),
    ("aws", "--profile --region --output --endpoint-url"),
    ("gcloud", "--project --account --configuration"),
    ("pulumi cdk serverless sls", "-C --cwd -s --stack --profile -a --app --stage"),
    ("vercel netlify firebase wrangler fly flyctl", "--cwd -t --token -P --project -c --config -a --app"),
    ("mvn mvnw gradle gradlew", "-f --file -p --project-dir -P -s --settings"),
];

/// Programs and shell keywords that run the following command. The end of their own options is unknown here, so
/// every later word is tried as the program.
pub(crate) const WRAPPERS: &str = "sudo doas env nohup time exec command builtin nice ionice setsid stdbuf timeout \
    xargs parallel find watch script strace unshare chroot busybox npx bunx uvx pipx pnpm poetry uv bundle yarn npm \
    ! { if then elif else while until do";

/// Programs that run a script from the argument after `-c`, or from stdin.
pub(crate) const SHELLS: &str = "sh bash dash zsh ksh ash fish su";
