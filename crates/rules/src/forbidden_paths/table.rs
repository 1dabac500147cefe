//! The groups of built-in forbidden paths, each with the tool that reads them and where its documentation says so.

use super::Lift;

/// Forbidden paths with the same tool and the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The program that reads them; empty where it is no single one.
    pub tool: &'static str,
    /// Why an agent must not change them unasked.
    pub why: &'static str,
    /// The tool's documentation; empty if there is no tool.
    pub source: &'static str,
    /// Gitignore-style globs.
    pub patterns: &'static [&'static str],
    /// Whether a contract's `lift_paths` can lift them.
    pub lift: Lift,
    /// Whether they also decide what verification does, where they are lifted.
    pub decides_verification: bool,
}

const fn never(pattern: &'static [&'static str], why: &'static str) -> Group {
    Group { tool: "", why, source: "", patterns: pattern, lift: Lift::Never, decides_verification: false }
}

const fn holds(why: &'static str, patterns: &'static [&'static str]) -> Group {
    Group { tool: "", why, source: "", patterns, lift: Lift::ByContract, decides_verification: false }
}

const fn read_by(
    tool: &'static str,
    why: &'static str,
    source: &'static str,
    patterns: &'static [&'static str],
) -> Group {
    Group { tool, why, source, patterns, lift: Lift::ByContract, decides_verification: false }
}

/// A group that verification runs or loads as well.
const fn deciding(group: Group) -> Group {
    Group { decides_verification: true, ..group }
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
const ENVIRONMENT_TOOL: &str = "a tool runs it on a person's machine when it starts the environment";
const OTHER_VCS: &str =
    "another version control system takes the directory for a repository and follows its configuration";
const SHELL: &str = "a shell runs it when the folder is entered";
const HOOK: &str = "git runs it on commit, push or checkout";
const GIT_CONFIG: &str = "it changes what git runs or fetches";
const REVIEW: &str = "it decides who reviews a change, or what merges without review";
const BUILD_TOOL: &str =
    "it makes a build tool or package manager run or fetch something else, whatever the command";
const INTERPRETER: &str = "an interpreter runs it at its start, whatever the program";
const DEBUGGER: &str = "a debugger or an interactive shell runs it at its start";
const SERVER: &str = "a web server obeys it";

/// Every group.
#[rustfmt::skip]
pub(super) const GROUPS: &[Group] = &[
    never(&[".git"], "it is git's own state, with hooks and configuration that run by themselves"),
    never(&[".herma"], "it is herma's own state"),
    holds(SECRET, &["secrets", "secrets.*", ".secrets", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa", "id_ecdsa", "id_ed25519"]),
    holds(ENVIRONMENT, &[".env", ".env.*"]),
    holds(CREDENTIAL, &["credentials", "credentials.*", ".git-credentials", ".netrc", ".pypirc", ".aws", ".gnupg", ".kube", ".ssh", "**/.docker/config.json"]),
    deciding(holds(CREDENTIAL, &[".npmrc"])),
    holds(DEPLOY, &["deploy", "deploy.*", "deployment/", "deployments/"]),
    read_by("semantic-release", DEPLOY, "https://semantic-release.gitbook.io/semantic-release/usage/configuration", &[".releaserc", ".releaserc.*", "release.config.*"]),
    read_by("GoReleaser", DEPLOY, "https://goreleaser.com/customization/", &[".goreleaser.yml", ".goreleaser.yaml"]),
    read_by("Vercel", DEPLOY, "https://vercel.com/docs/project-configuration", &["vercel.json", "vercel.ts", "now.json"]),
    read_by("Netlify", DEPLOY, "https://docs.netlify.com/build/configure-builds/file-based-configuration/", &["netlify.toml"]),
    read_by("Fly.io", DEPLOY, "https://fly.io/docs/reference/configuration/", &["fly.toml"]),
    read_by("Firebase", DEPLOY, "https://firebase.google.com/docs/cli", &["firebase.json", ".firebaserc"]),
    read_by("Cloudflare Wrangler", DEPLOY, "https://developers.cloudflare.com/workers/wrangler/configuration/", &["wrangler.toml", "wrangler.json", "wrangler.jsonc"]),
    read_by("Serverless Framework", DEPLOY, "https://www.serverless.com/framework/docs/providers/aws/guide/serverless.yml", &["serverless.yml", "serverless.yaml", "serverless.json", "serverless.js", "serverless.ts"]),
    read_by("Skaffold", DEPLOY, "https://skaffold.dev/docs/references/yaml/", &["skaffold.yaml", "skaffold.yml"]),
    read_by("Heroku", DEPLOY, "https://devcenter.heroku.com/articles/procfile", &["Procfile", "Procfile.*", "app.json", "heroku.yml"]),
    read_by("Render", DEPLOY, "https://render.com/docs/blueprint-spec", &["render.yaml"]),
    read_by("Railway", DEPLOY, "https://docs.railway.com/reference/config-as-code", &["railway.json", "railway.toml"]),
    read_by("AWS Elastic Beanstalk", DEPLOY, "https://docs.aws.amazon.com/elasticbeanstalk/latest/dg/ebextensions.html", &[".ebextensions", ".elasticbeanstalk"]),
    holds(INFRA, &["infra", "infrastructure/", "terraform/"]),
    read_by("Ansible", INFRA, "https://docs.ansible.com/ansible/latest/reference_appendices/config.html", &["ansible.cfg"]),
    // CI.
    read_by("GitHub Actions", WORKFLOW, "https://docs.github.com/actions", &["**/.github/workflows", "**/.github/actions"]),
    read_by("GitHub Actions in other repositories", WORKFLOW, "https://docs.github.com/actions/reference/workflows-and-actions/metadata-syntax", &["action.yml", "action.yaml"]),
    read_by("Gitea and Forgejo Actions", WORKFLOW, "https://docs.gitea.com/usage/actions/overview", &["**/.gitea/workflows", "**/.forgejo/workflows"]),
    read_by("GitLab CI", WORKFLOW, "https://docs.gitlab.com/ci/yaml/", &[".gitlab-ci.yml", ".gitlab-ci.yaml", "**/.gitlab/ci"]),
    read_by("CircleCI", WORKFLOW, "https://circleci.com/docs/configuration-reference/", &[".circleci"]),
    read_by("Buildkite", WORKFLOW, "https://buildkite.com/docs/pipelines/configure", &[".buildkite"]),
    read_by("Woodpecker", WORKFLOW, "https://woodpecker-ci.org/docs/usage/workflows", &[".woodpecker", ".woodpecker.yml", ".woodpecker.yaml"]),
    read_by("Drone", WORKFLOW, "https://docs.drone.io/pipeline/configuration/", &[".drone.yml", ".drone.yaml", ".drone.star", ".drone.jsonnet"]),
    read_by("Travis CI", WORKFLOW, "https://docs.travis-ci.com/user/customizing-the-build/", &[".travis.yml"]),
    read_by("AppVeyor", WORKFLOW, "https://www.appveyor.com/docs/appveyor-yml/", &[".appveyor.yml", "appveyor.yml"]),
    read_by("Cirrus CI", WORKFLOW, "https://cirrus-ci.org/guide/writing-tasks/", &[".cirrus.yml", ".cirrus.yaml", ".cirrus.star"]),
    read_by("Azure Pipelines", WORKFLOW, "https://learn.microsoft.com/azure/devops/pipelines/", &["azure-pipelines.yml", "azure-pipelines.yaml", ".azure-pipelines", ".azuredevops"]),
    read_by("Bitbucket Pipelines", WORKFLOW, "https://support.atlassian.com/bitbucket-cloud/docs/bitbucket-pipelines-configuration-reference/", &["bitbucket-pipelines.yml"]),
    read_by("Jenkins", WORKFLOW, "https://www.jenkins.io/doc/book/pipeline/jenkinsfile/", &["Jenkinsfile", "Jenkinsfile.*", ".jenkins"]),
    read_by("TeamCity", WORKFLOW, "https://www.jetbrains.com/help/teamcity/kotlin-dsl.html", &[".teamcity"]),
    read_by("Semaphore", WORKFLOW, "https://docs.semaphore.io/reference/pipeline-yaml", &[".semaphore"]),
    read_by("Codefresh", WORKFLOW, "https://codefresh.io/docs/docs/pipelines/what-is-the-codefresh-yaml/", &["codefresh.yml", ".codefresh"]),
    read_by("Tekton", WORKFLOW, "https://pipelinesascode.com/docs/", &[".tekton"]),
    read_by("Harness", WORKFLOW, "https://developer.harness.io/docs/platform/git-experience/git-experience-overview/", &[".harness"]),
    read_by("Zuul", WORKFLOW, "https://zuul-ci.org/docs/zuul/latest/project-config.html", &[".zuul.yaml", "zuul.yaml", ".zuul.d", "zuul.d"]),
    read_by("sourcehut builds", WORKFLOW, "https://man.sr.ht/builds.sr.ht/manifest.md", &[".build.yml", ".builds"]),
    read_by("Google Cloud Build", WORKFLOW, "https://cloud.google.com/build/docs/build-config-file-schema", &["cloudbuild.yaml", "cloudbuild.yml", "cloudbuild.json"]),
    read_by("AWS CodeBuild", WORKFLOW, "https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html", &["buildspec.yml", "buildspec.yaml"]),
    read_by("Bitrise", WORKFLOW, "https://devcenter.bitrise.io/", &["bitrise.yml"]),
    read_by("Codemagic", WORKFLOW, "https://docs.codemagic.io/yaml-basic-configuration/yaml-getting-started/", &["codemagic.yaml"]),
    read_by("OneDev", WORKFLOW, "https://docs.onedev.io/", &[".onedev-buildspec.yml"]),
    read_by("Screwdriver", WORKFLOW, "https://docs.screwdriver.cd/user-guide/configuration/", &["screwdriver.yaml"]),
    read_by("Read the Docs", WORKFLOW, "https://docs.readthedocs.com/platform/stable/config-file/v2.html", &[".readthedocs.yml", ".readthedocs.yaml"]),
    // Reviews and bots.
    read_by("GitHub and GitLab", REVIEW, "https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners", &["CODEOWNERS"]),
    read_by("Dependabot", REVIEW, "https://docs.github.com/code-security/dependabot/working-with-dependabot/dependabot-options-reference", &["**/.github/dependabot.yml", "**/.github/dependabot.yaml"]),
    read_by("Renovate", REVIEW, "https://docs.renovatebot.com/configuration-options/", &["renovate.json", "renovate.json5", ".renovaterc", ".renovaterc.json", ".renovaterc.json5"]),
    read_by("Mergify", REVIEW, "https://docs.mergify.com/configuration/file-format/", &[".mergify.yml", "**/.mergify/config.yml", "**/.github/mergify.yml"]),
    read_by("Kodiak", REVIEW, "https://kodiakhq.com/docs/config-reference", &[".kodiak.toml"]),
    read_by("Probot settings", REVIEW, "https://github.com/repository-settings/app", &["**/.github/settings.yml"]),
    // Dependencies.
    deciding(holds(LOCK, &[
        "Cargo.lock", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock",
        "poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "pylock.*.toml", "Gemfile.lock", "go.sum", "go.work.sum",
        "composer.lock", "mix.lock", "pubspec.lock", "Podfile.lock", "Package.resolved", "packages.lock.json", "gradle.lockfile",
        "flake.lock", "conan.lock", ".terraform.lock.hcl", "MODULE.bazel.lock",
    ])),
    deciding(holds(VENDORED, &["vendor/", "third_party/", "node_modules/"])),
    // Build tools and package managers.
    deciding(read_by("Cargo", BUILD_TOOL, "https://doc.rust-lang.org/cargo/reference/config.html", &["**/.cargo/config.toml", "**/.cargo/config"])),
    deciding(read_by("Yarn", BUILD_TOOL, "https://yarnpkg.com/configuration/yarnrc", &[".yarnrc", ".yarnrc.yml", ".yarn", ".pnp.cjs", ".pnp.js", ".pnp.loader.mjs"])),
    deciding(read_by("pnpm", BUILD_TOOL, "https://pnpm.io/pnpmfile", &[".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js"])),
    deciding(read_by("Maven", BUILD_TOOL, "https://maven.apache.org/configure.html", &[".mvn", "mvnw", "mvnw.cmd"])),
    deciding(read_by("Gradle wrapper", BUILD_TOOL, "https://docs.gradle.org/current/userguide/gradle_wrapper.html", &["gradlew", "gradlew.bat", "**/gradle/wrapper"])),
    deciding(read_by("sbt", BUILD_TOOL, "https://www.scala-sbt.org/1.x/docs/Command-Line-Reference.html", &[".jvmopts", ".sbtopts"])),
    deciding(read_by("Bazelisk", BUILD_TOOL, "https://github.com/bazelbuild/bazelisk", &["**/tools/bazel"])),
    deciding(read_by("Bundler", BUILD_TOOL, "https://bundler.io/man/bundle-config.1.html", &[".bundle"])),
    deciding(read_by("NuGet", BUILD_TOOL, "https://learn.microsoft.com/nuget/reference/nuget-config-file", &["NuGet.config"])),
    deciding(read_by("conda", BUILD_TOOL, "https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/use-condarc.html", &[".condarc"])),
    // Interpreters, debuggers, servers.
    deciding(read_by("Python", INTERPRETER, "https://docs.python.org/3/library/site.html", &["sitecustomize.py", "usercustomize.py", "*.pth"])),
    deciding(read_by("R", INTERPRETER, "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html", &[".Rprofile", ".Renviron", ".RData"])),
    deciding(read_by("PHP", SERVER, "https://www.php.net/manual/en/configuration.file.per-user.php", &[".user.ini"])),
    read_by("Apache", SERVER, "https://httpd.apache.org/docs/current/howto/htaccess.html", &[".htaccess"]),
    read_by("GDB", DEBUGGER, "https://sourceware.org/gdb/current/onlinedocs/gdb.html/Startup.html", &[".gdbinit"]),
    read_by("LLDB", DEBUGGER, "https://lldb.llvm.org/man/lldb.html", &[".lldbinit"]),
    read_by("pdb", DEBUGGER, "https://docs.python.org/3/library/pdb.html", &[".pdbrc"]),
    read_by("IRB and Pry", DEBUGGER, "https://github.com/ruby/irb", &[".irbrc", ".pryrc"]),
    read_by("IEx", DEBUGGER, "https://hexdocs.pm/iex/IEx.html", &[".iex.exs"]),
    read_by("GHCi", DEBUGGER, "https://downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html", &[".ghci"]),
    // Agents.
    read_by("AGENTS.md readers", AGENT, "https://agents.md", &["AGENTS.md", "AGENTS.override.md", "AGENT.md", ".agents", ".agent"]),
    read_by("Claude Code", AGENT, "https://code.claude.com/docs/en/memory", &[".claude", ".claude.json", "CLAUDE.md", "CLAUDE.local.md", ".mcp.json", ".claude-plugin"]),
    read_by("Codex", AGENT, "https://github.com/openai/codex", &[".codex"]),
    read_by("OpenCode", AGENT, "https://opencode.ai/docs/config/", &[".opencode", "opencode.json", "opencode.jsonc"]),
    read_by("Pi", AGENT, "https://github.com/badlogic/pi-mono", &[".pi"]),
    read_by("Hermes", AGENT, "https://github.com/NousResearch/hermes-agent", &[".hermes", ".hermes.md", "HERMES.md"]),
    read_by("Gemini CLI", AGENT, "https://github.com/google-gemini/gemini-cli", &[".gemini", "GEMINI.md", ".geminiignore"]),
    read_by("Qwen Code", AGENT, "https://github.com/QwenLM/qwen-code", &[".qwen", "QWEN.md"]),
    read_by("GitHub Copilot", AGENT, "https://docs.github.com/copilot/how-tos/configure-custom-instructions/add-repository-instructions", &["**/.github/copilot-instructions.md", "**/.github/instructions", "**/.github/prompts", "**/.github/chatmodes", "**/.github/agents", "**/.github/skills", "**/.github/hooks", "**/.github/copilot", ".copilot"]),
    read_by("Cursor", AGENT, "https://docs.cursor.com/context/rules", &[".cursor", ".cursorrules"]),
    read_by("Windsurf", AGENT, "https://docs.windsurf.com/windsurf/cascade/memories", &[".windsurf", ".windsurfrules"]),
    read_by("Cline", AGENT, "https://docs.cline.bot/features/cline-rules", &[".cline", ".clinerules"]),
    read_by("Roo Code", AGENT, "https://docs.roocode.com/features/custom-instructions", &[".roo", ".roorules", ".roorules-*", ".roomodes"]),
    read_by("Kilo Code", AGENT, "https://kilo.ai/docs", &[".kilocode", ".kilocoderules", ".kilocodemodes"]),
    read_by("Aider", AGENT, "https://aider.chat/docs/config/aider_conf.html", &[".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json"]),
    read_by("Kiro", AGENT, "https://kiro.dev/docs/steering/", &[".kiro"]),
    read_by("Junie", AGENT, "https://www.jetbrains.com/help/junie/customize-guidelines.html", &[".junie"]),
    read_by("JetBrains AI Assistant", AGENT, "https://www.jetbrains.com/help/ai-assistant/configure-project-rules.html", &[".aiassistant"]),
    read_by("Amazon Q Developer", AGENT, "https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/context-project-rules.html", &[".amazonq"]),
    read_by("Continue", AGENT, "https://docs.continue.dev/customize/deep-dives/rules", &[".continue", ".continuerules", ".continuerc.json"]),
    read_by("Goose", AGENT, "https://block.github.io/goose/", &[".goose", ".goosehints"]),
    read_by("Augment", AGENT, "https://docs.augmentcode.com/setup-augment/guidelines", &[".augment", ".augment-guidelines"]),
    read_by("Trae", AGENT, "https://docs.trae.ai/ide/rules", &[".trae"]),
    read_by("Crush", AGENT, "https://github.com/charmbracelet/crush", &[".crush", ".crush.json", "crush.json", "CRUSH.md"]),
    read_by("Warp", AGENT, "https://docs.warp.dev", &[".warp", "WARP.md"]),
    read_by("Factory", AGENT, "https://docs.factory.ai", &[".factory"]),
    read_by("OpenHands", AGENT, "https://docs.all-hands.dev/usage/prompting/microagents-repo", &[".openhands", ".openhands_instructions"]),
    read_by("Firebase Studio", AGENT, "https://firebase.google.com/docs/studio", &[".idx"]),
    read_by("Replit", AGENT, "https://docs.replit.com/replitai/replit-dot-md", &["replit.md", ".replit", "replit.nix"]),
    read_by("Amp", AGENT, "https://ampcode.com/manual", &[".amp"]),
    read_by("Tabnine", AGENT, "https://docs.tabnine.com", &[".tabnine"]),
    // Editors.
    read_by("Visual Studio Code", EDITOR, "https://code.visualstudio.com/docs/editor/tasks", &[".vscode", "*.code-workspace"]),
    read_by("JetBrains IDEs", EDITOR, "https://www.jetbrains.com/help/idea/creating-and-managing-projects.html", &[".idea", ".fleet", ".run"]),
    read_by("Dev Containers", EDITOR, "https://containers.dev/implementors/json_reference/", &[".devcontainer", ".devcontainer.json"]),
    read_by("Zed", EDITOR, "https://zed.dev/docs/tasks", &[".zed", ".rules"]),
    read_by("Vim and Neovim", EDITOR, "https://neovim.io/doc/user/options.html#'exrc'", &[".exrc", ".nvimrc", ".nvim.lua", ".vimrc"]),
    read_by("localvimrc", EDITOR, "https://github.com/embear/vim-localvimrc", &[".lvimrc"]),
    read_by("coc.nvim", EDITOR, "https://github.com/neoclide/coc.nvim/wiki/Using-the-configuration-file", &["**/.vim/coc-settings.json"]),
    read_by("Sublime Text", EDITOR, "https://www.sublimetext.com/docs/projects.html", &["*.sublime-project", "*.sublime-workspace"]),
    read_by("Eclipse Theia", EDITOR, "https://theia-ide.org/docs/user_getting_started/", &[".theia"]),
    read_by("Emacs", EDITOR, "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html", &[".dir-locals.el", ".dir-locals-2.el"]),
    read_by("Helix", EDITOR, "https://docs.helix-editor.com/configuration.html", &[".helix"]),
    read_by("Gitpod", EDITOR, "https://www.gitpod.io/docs/classic/user/references/gitpod-yml", &[".gitpod.yml", ".gitpod.Dockerfile", ".ona"]),
    read_by("Vagrant", ENVIRONMENT_TOOL, "https://developer.hashicorp.com/vagrant/docs/vagrantfile", &["Vagrantfile"]),
    read_by("Tilt", ENVIRONMENT_TOOL, "https://docs.tilt.dev/api.html", &["Tiltfile"]),
    // Shells.
    read_by("direnv", SHELL, "https://direnv.net/man/direnv.1.html", &[".envrc"]),
    deciding(read_by("mise", SHELL, "https://mise.jdx.dev/configuration.html", &["mise.toml", "mise.*.toml", ".mise.toml", ".mise.*.toml", ".mise", "**/.config/mise.toml", "**/.config/mise"])),
    read_by("autoenv", SHELL, "https://github.com/hyperupcall/autoenv", &[".autoenv", ".autoenv.zsh", ".env.leave"]),
    deciding(read_by("Devbox", SHELL, "https://www.jetify.com/docs/devbox/configuration/", &["devbox.json"])),
    deciding(read_by("devenv", SHELL, "https://devenv.sh/reference/options/", &["devenv.nix", "devenv.yaml", "devenv.local.nix"])),
    deciding(read_by("nix-shell", SHELL, "https://nix.dev/manual/nix/latest/command-ref/nix-shell", &["shell.nix"])),
    // Git.
    read_by("Husky", HOOK, "https://typicode.github.io/husky/", &[".husky", ".huskyrc", ".huskyrc.*", "husky.config.js"]),
    read_by("git", HOOK, "https://git-scm.com/docs/githooks", &[".githooks", ".git-hooks"]),
    read_by("pre-commit", HOOK, "https://pre-commit.com", &[".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "prek.toml"]),
    read_by("Lefthook", HOOK, "https://lefthook.dev/configuration/", &["lefthook.*", ".lefthook.*", "lefthook-local.*", ".lefthook-local.*", ".lefthook", ".lefthook-local"]),
    read_by("Overcommit", HOOK, "https://github.com/sds/overcommit", &[".overcommit.yml"]),
    read_by("simple-git-hooks", HOOK, "https://github.com/toplenboren/simple-git-hooks", &[".simple-git-hooks.*", "simple-git-hooks.*"]),
    read_by("lint-staged", HOOK, "https://github.com/lint-staged/lint-staged", &[".lintstagedrc", ".lintstagedrc.*", "lint-staged.config.*"]),
    read_by("commitlint", HOOK, "https://commitlint.js.org/reference/configuration.html", &[".commitlintrc", ".commitlintrc.*", "commitlint.config.*"]),
    read_by("CaptainHook and GrumPHP", HOOK, "https://captainhook.info/configure.html", &["captainhook.json", "grumphp.yml", "grumphp.yml.dist"]),
    read_by("hk", HOOK, "https://hk.jdx.dev", &["hk.pkl"]),
    read_by("git", GIT_CONFIG, "https://git-scm.com/docs/gitattributes", &[".gitattributes", ".gitmodules", ".gitconfig"]),
    read_by("Mercurial", OTHER_VCS, "https://repo.mercurial-scm.org/hg/help/config", &[".hg", ".hgrc"]),
    read_by("Jujutsu", OTHER_VCS, "https://jj-vcs.github.io/jj/latest/config/", &[".jj"]),
    read_by("Subversion", OTHER_VCS, "https://svnbook.red-bean.com/", &[".svn"]),
    read_by("Git LFS", GIT_CONFIG, "https://github.com/git-lfs/git-lfs/blob/main/docs/man/git-lfs-config.adoc", &[".lfsconfig"]),
];
