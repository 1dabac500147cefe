//! The files that decide what verification does, each with the tool that reads them and what they decide.

/// Files of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deciding {
    /// The program that reads them.
    pub tool: &'static str,
    /// Their influence.
    pub why: &'static str,
    /// The tool's documentation.
    pub source: &'static str,
    /// Names of files, each with at most one `*`; directories end with `/`.
    pub patterns: &'static [&'static str],
}

const fn by(
    tool: &'static str,
    why: &'static str,
    source: &'static str,
    patterns: &'static [&'static str],
) -> Deciding {
    Deciding { tool, why, source, patterns }
}

const COMMANDS: &str = "it says which commands a target or script runs";
const BUILD: &str =
    "it says what is built and tested, with which dependencies and flags, or runs code at build time";
const RUNNER: &str = "it says which tests run, and what is loaded before them";
const LINTER: &str = "it says what a checker looks at and what it lets pass";
const VERSION: &str = "it says which version of a tool runs";

/// Every group.
#[rustfmt::skip]
pub const DECIDING: &[Deciding] = &[
    // Task runners.
    by("make", COMMANDS, "https://www.gnu.org/software/make/manual/make.html", &["Makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak"]),
    by("Task", COMMANDS, "https://taskfile.dev/reference/schema", &["Taskfile.*"]),
    by("just", COMMANDS, "https://just.systems/man/en/", &["justfile", ".justfile", "*.just"]),
    by("Mage", COMMANDS, "https://magefile.org/magefiles/", &["magefile.go", "magefiles/"]),
    by("Rake", COMMANDS, "https://ruby.github.io/rake/", &["Rakefile", "Rakefile.rb", "*.rake"]),
    by("Invoke, doit, Fabric", COMMANDS, "https://docs.pyinvoke.org/", &["tasks.py", "dodo.py", "fabfile.py", "invoke.yaml"]),
    by("gulp and Grunt", COMMANDS, "https://gulpjs.com/docs/en/getting-started/javascript-and-gulpfiles/", &["gulpfile.*", "Gruntfile.*"]),
    by("Turborepo, Nx, Lerna, Rush, moon", COMMANDS, "https://turborepo.com/docs/reference/configuration", &["turbo.json", "turbo.jsonc", "nx.json", "project.json", "lerna.json", "rush.json", "moon.yml", ".moon/"]),
    by("Earthly, Dagger", COMMANDS, "https://docs.earthly.dev/docs/earthfile", &["Earthfile", "dagger.json"]),
    by("fastlane", COMMANDS, "https://docs.fastlane.tools/", &["Fastfile"]),
    // C and C++.
    by("CMake", BUILD, "https://cmake.org/cmake/help/latest/manual/cmake-language.7.html", &["CMakeLists.txt", "*.cmake", "CMakePresets.json", "CMakeUserPresets.json"]),
    by("Meson and Ninja", BUILD, "https://mesonbuild.com/Reference-manual.html", &["meson.build", "meson_options.txt", "meson.options", "build.ninja"]),
    by("Autotools", BUILD, "https://www.gnu.org/software/autoconf/manual/", &["configure", "configure.ac", "configure.in"]),
    by("SCons", BUILD, "https://scons.org/doc/production/HTML/scons-user.html", &["SConstruct", "SConscript"]),
    by("Bazel, Buck, Pants", BUILD, "https://bazel.build/reference/be/overview", &["BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "*.bzl", ".bazelrc", ".bazelversion", "BUCK", ".buckconfig", "pants.toml"]),
    by("Conan and vcpkg", BUILD, "https://docs.conan.io/2/reference/conanfile.html", &["conanfile.py", "conanfile.txt", "vcpkg.json"]),
    by("clang-tidy, clang-format", LINTER, "https://clang.llvm.org/extra/clang-tidy/", &[".clang-tidy", ".clang-format"]),
    // Rust.
    by("Cargo", BUILD, "https://doc.rust-lang.org/cargo/reference/manifest.html", &["Cargo.toml", "build.rs"]),
    by("cargo-nextest", RUNNER, "https://nexte.st/docs/configuration/", &["**/.config/nextest.toml"]),
    by("rustup", VERSION, "https://rust-lang.github.io/rustup/overrides.html", &["rust-toolchain", "rust-toolchain.toml"]),
    by("Clippy, rustfmt, cargo-deny", LINTER, "https://doc.rust-lang.org/clippy/configuration.html", &["clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "deny.toml"]),
    // Go.
    by("Go", BUILD, "https://go.dev/ref/mod", &["go.mod", "go.work"]),
    by("golangci-lint", LINTER, "https://golangci-lint.run/docs/configuration/", &[".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"]),
    // Python.
    by("Python packaging", BUILD, "https://packaging.python.org/en/latest/specifications/pyproject-toml/", &["pyproject.toml", "setup.py", "setup.cfg", "hatch.toml", "uv.toml", "poetry.toml", "pdm.toml", "requirements*.txt", "constraints*.txt", "Pipfile", "environment.yml", "environment.yaml"]),
    by("pytest, tox, nox", RUNNER, "https://docs.pytest.org/en/stable/reference/customize.html", &["pytest.toml", ".pytest.toml", ".pytest.ini", "toxfile.py", "tox.toml", "manage.py"]),
    by("coverage", RUNNER, "https://coverage.readthedocs.io/en/latest/config.html", &[".coveragerc", ".coveragerc.toml"]),
    by("mypy, Ruff, Flake8, Pylint, Pyright", LINTER, "https://docs.astral.sh/ruff/configuration/", &["mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", "pylintrc", ".pylintrc", "pylintrc.toml", "pyrightconfig.json", ".bandit", ".isort.cfg"]),
    by("pyenv", VERSION, "https://github.com/pyenv/pyenv", &[".python-version"]),
    // JavaScript and TypeScript.
    by("npm, pnpm, Yarn, Bun, Deno", BUILD, "https://docs.npmjs.com/cli/configuring-npm/package-json", &["package.json", "pnpm-workspace.yaml", "bunfig.toml", "deno.json", "deno.jsonc"]),
    by("node-gyp", BUILD, "https://github.com/nodejs/node-gyp", &["binding.gyp", "*.gyp", "*.gypi"]),
    by("Jest, Vitest, Mocha, AVA, Karma, Jasmine", RUNNER, "https://jestjs.io/docs/configuration", &["jest.config.*", "jest.setup.*", "jest-preset.*", "vitest.config.*", "vitest.workspace.*", "vitest.setup.*", "setupTests.*", ".mocharc", ".mocharc.*", "ava.config.*", "karma.conf.*", "jasmine.json", ".taprc", "web-test-runner.config.*"]),
    by("Playwright, Cypress, WebdriverIO, Nightwatch", RUNNER, "https://playwright.dev/docs/test-configuration", &["playwright.config.*", "cypress.config.*", "cypress.json", "wdio.conf.*", "nightwatch.conf.*"]),
    by("nyc and c8", RUNNER, "https://github.com/istanbuljs/nyc", &[".nycrc", ".nycrc.*", "nyc.config.*", ".c8rc", ".c8rc.*"]),
    by("TypeScript, Babel, SWC", BUILD, "https://www.typescriptlang.org/tsconfig/", &["tsconfig.json", "tsconfig.*.json", "jsconfig.json", "babel.config.*", ".babelrc", ".babelrc.*", ".swcrc"]),
    by("Vite, webpack, Rollup, esbuild, Next.js, Nuxt, Angular, Metro", BUILD, "https://vite.dev/config/", &["vite.config.*", "webpack.config.*", "webpack.*.js", "rollup.config.*", "esbuild.config.*", "tsup.config.*", "next.config.*", "nuxt.config.*", "svelte.config.*", "astro.config.*", "angular.json", "metro.config.*"]),
    by("ESLint, Prettier, Biome, Stylelint, oxlint", LINTER, "https://eslint.org/docs/latest/use/configure/", &["eslint.config.*", ".eslintrc", ".eslintrc.*", ".eslintignore", "prettier.config.*", ".prettierrc", ".prettierrc.*", ".prettierignore", "biome.json", "biome.jsonc", "stylelint.config.*", ".stylelintrc", ".stylelintrc.*", ".oxlintrc.json", "tslint.json"]),
    by("nvm, Volta", VERSION, "https://github.com/nvm-sh/nvm", &[".nvmrc", ".node-version"]),
    // The JVM.
    by("Maven and Ant", BUILD, "https://maven.apache.org/pom.html", &["pom.xml", "build.xml"]),
    by("Gradle", BUILD, "https://docs.gradle.org/current/userguide/build_file_basics.html", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "*.gradle", "*.gradle.kts", "gradle.properties", "**/gradle/libs.versions.toml", "buildSrc/"]),
    by("sbt and Mill", BUILD, "https://www.scala-sbt.org/1.x/docs/Basic-Def.html", &["*.sbt", "**/project/build.properties", "build.sc", "build.mill"]),
    by("Leiningen, Clojure CLI, Babashka", BUILD, "https://clojure.org/reference/clojure_cli", &["project.clj", "deps.edn", "bb.edn", "shadow-cljs.edn"]),
    by("JUnit and TestNG", RUNNER, "https://junit.org/junit5/docs/current/user-guide/", &["junit-platform.properties", "testng.xml"]),
    by("Checkstyle, detekt, PMD", LINTER, "https://checkstyle.org/config.html", &["checkstyle.xml", "detekt.yml", "pmd.xml", "spotbugs-exclude.xml"]),
    // .NET.
    by("MSBuild", BUILD, "https://learn.microsoft.com/visualstudio/msbuild/customize-your-build", &["*.csproj", "*.fsproj", "*.vbproj", "*.proj", "*.sln", "*.slnx", "*.props", "*.targets", "global.json", "**/.config/dotnet-tools.json"]),
    by("VSTest", RUNNER, "https://learn.microsoft.com/visualstudio/test/configure-unit-tests-by-using-a-dot-runsettings-file", &["*.runsettings", "xunit.runner.json"]),
    // Ruby, PHP, Perl, Lua.
    by("Bundler and RubyGems", BUILD, "https://bundler.io/man/gemfile.5.html", &["Gemfile", "*.gemspec"]),
    by("SimpleCov, Guard", RUNNER, "https://github.com/simplecov-ruby/simplecov", &[".simplecov", "Guardfile"]),
    by("RuboCop", LINTER, "https://docs.rubocop.org/rubocop/configuration.html", &[".rubocop.yml", ".rubocop_todo.yml"]),
    by("rbenv", VERSION, "https://github.com/rbenv/rbenv", &[".ruby-version"]),
    by("Composer", BUILD, "https://getcomposer.org/doc/04-schema.md", &["composer.json"]),
    by("PHPUnit, Codeception, Behat, phpspec, Infection", RUNNER, "https://docs.phpunit.de/en/12.0/configuration.html", &["phpunit.xml.dist", "phpunit.dist.xml", "codeception.yml", "behat.yml", "phpspec.yml", "infection.json", "infection.json5"]),
    by("PHPStan, Psalm, PHP_CodeSniffer", LINTER, "https://phpstan.org/config-reference", &["phpstan.neon", "phpstan.neon.dist", "phpstan-baseline.neon", "psalm.xml", "psalm.xml.dist", "phpcs.xml", "phpcs.xml.dist"]),
    by("Perl", BUILD, "https://metacpan.org/pod/ExtUtils::MakeMaker", &["Build.PL", "cpanfile", "dist.ini", ".proverc"]),
    by("LuaRocks, busted, Luacheck", BUILD, "https://lunarmodules.github.io/busted/", &["*.rockspec", ".busted", ".luacheckrc"]),
    // Others.
    by("Mix, rebar3", BUILD, "https://hexdocs.pm/mix/Mix.html", &["mix.exs", ".formatter.exs", ".credo.exs", "rebar.config", "rebar.config.script"]),
    by("Cabal and Stack", BUILD, "https://cabal.readthedocs.io/en/stable/cabal-package-description-file.html", &["*.cabal", "cabal.project", "cabal.project.*", "package.yaml", "stack.yaml", "Setup.hs"]),
    by("Dune and opam", BUILD, "https://dune.readthedocs.io/en/stable/reference/index.html", &["dune", "dune-project", "dune-workspace", "*.opam"]),
    by("SwiftPM, Xcode, CocoaPods", BUILD, "https://docs.swift.org/package-manager/PackageDescription/", &["Package.swift", "*.pbxproj", "*.xcscheme", "*.xctestplan", "*.xcconfig", "Podfile", ".swiftlint.yml"]),
    by("pub and Flutter", BUILD, "https://dart.dev/tools/pub/pubspec", &["pubspec.yaml", "dart_test.yaml", "analysis_options.yaml", "build.yaml", "melos.yaml"]),
    by("Zig, Nim, Crystal, D, Gleam, Elm", BUILD, "https://ziglang.org/learn/build-system/", &["build.zig", "build.zig.zon", "*.nimble", "nim.cfg", "config.nims", "shard.yml", "dub.json", "dub.sdl", "gleam.toml", "elm.json"]),
    by("Julia", BUILD, "https://pkgdocs.julialang.org/v1/toml-files/", &["Project.toml", "Manifest.toml"]),
    by("Nix", BUILD, "https://nix.dev/manual/nix/latest/command-ref/new-cli/nix3-flake", &["flake.nix", "default.nix"]),
    by("asdf and mise", VERSION, "https://asdf-vm.com/manage/configuration.html", &[".tool-versions"]),
    by("ShellCheck, yamllint, markdownlint, hadolint", LINTER, "https://www.shellcheck.net/wiki/Directive", &[".shellcheckrc", ".yamllint", ".yamllint.*", ".markdownlint.*", ".hadolint.yaml", ".hadolint.yml"]),
];
