//! The table of tools. A new tool is one row.

/// How a tool is found, mounted and asked for its version.
#[derive(Clone, Copy, Debug)]
pub struct ToolRow {
    /// Its name in definitions.
    pub name: &'static str,
    /// Its programs by name; the first that is found is the one that is asked.
    pub programs: &'static [&'static str],
    /// The arguments that make it print its version.
    pub version_args: &'static [&'static str],
    /// The arguments that make it print its installation prefix: a version manager's shim is no program of its own.
    pub prefix_args: Option<&'static [&'static str]>,
    /// Variables of the operator that name its installation prefix.
    pub prefix_variables: &'static [&'static str],
    /// Where version managers install it.
    pub managers: &'static [ManagerPlace],
    /// The parts of it that are mounted.
    pub layout: Layout,
    /// Its own parts below a prefix that it shares with the operator's files, such as `~/.local`: `*` stands for the rest of a
    /// name. The program itself is always one. With none, it is not used from there.
    pub shared_parts: Option<&'static [&'static str]>,
    /// Variables inside; `{prefix}` is its installation prefix.
    pub env: &'static [(&'static str, &'static str)],
    /// Tools that it runs with.
    pub needs: &'static [&'static str],
    /// Files of the system's own package outside of `/usr`.
    pub system_files: &'static [&'static str],
    /// A command that installs it.
    pub install: &'static str,
}

/// A directory of a version manager: below the directory that a variable names, else below the home.
#[derive(Clone, Copy, Debug)]
pub struct ManagerPlace {
    /// The variable that names the manager's directory.
    pub variable: &'static str,
    /// The manager's directory below the home.
    pub default: &'static str,
    /// The directories of programs below that; `*` stands for one name, such as a version.
    pub programs: &'static str,
}

/// The parts of a tool that are mounted, never a whole installation: `etc/npmrc` and `conf/settings.xml` may hold credentials.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// These parts of the prefix, whose `bin` holds the program.
    Prefix(&'static [&'static str]),
    /// These parts of the directory that holds the program.
    Directory(&'static [&'static str]),
    /// The program's file alone.
    Program,
    /// The npm package that the program is part of.
    NodePackage,
    /// The virtual environment that the program is part of.
    VirtualEnvironment,
}

const fn place(variable: &'static str, default: &'static str, programs: &'static str) -> ManagerPlace {
    ManagerPlace { variable, default, programs }
}

const UNIX_PARTS: Layout = Layout::Prefix(&["bin", "lib", "lib64", "libexec", "include", "share"]);
const NODE_PARTS: Layout = Layout::Prefix(&["bin", "lib", "include", "share"]);
const PYTHON_PARTS: Layout = Layout::Prefix(&["bin", "lib", "lib64", "include", "share"]);
const JAVA_PARTS: Layout =
    Layout::Prefix(&["bin", "conf", "include", "jmods", "jre", "legal", "lib", "release"]);

const NODE_MANAGERS: &[ManagerPlace] = &[
    place("NVM_DIR", ".nvm", "versions/node/*/bin"),
    place("FNM_DIR", ".local/share/fnm", "node-versions/*/installation/bin"),
    place("FNM_DIR", ".fnm", "node-versions/*/installation/bin"),
    place("VOLTA_HOME", ".volta", "tools/image/node/*/bin"),
    place("MISE_DATA_DIR", ".local/share/mise", "installs/node/*/bin"),
    place("ASDF_DATA_DIR", ".asdf", "installs/nodejs/*/bin"),
];

/// A row whose special cases are all empty.
const PLAIN: ToolRow = ToolRow {
    name: "",
    programs: &[],
    version_args: &["--version"],
    prefix_args: None,
    prefix_variables: &[],
    managers: &[],
    layout: UNIX_PARTS,
    shared_parts: None,
    env: &[],
    needs: &[],
    system_files: &[],
    install: "",
};

/// Every tool that herma knows.
pub const TOOLS: &[ToolRow] = &[
    ToolRow {
        name: "node",
        programs: &["node", "nodejs"],
        prefix_args: Some(&["-p", "require('path').dirname(require('path').dirname(process.execPath))"]),
        managers: NODE_MANAGERS,
        layout: NODE_PARTS,
        shared_parts: Some(&[]),
        install: "nvm install 22, or apt install nodejs npm",
        ..PLAIN
    },
    ToolRow {
        name: "npm",
        programs: &["npm"],
        managers: NODE_MANAGERS,
        layout: Layout::NodePackage,
        env: &[("npm_config_update_notifier", "false"), ("npm_config_fund", "false")],
        needs: &["node"],
        install: "nvm install 22, or apt install npm",
        ..PLAIN
    },
    ToolRow {
        name: "pnpm",
        programs: &["pnpm"],
        managers: NODE_MANAGERS,
        layout: Layout::NodePackage,
        needs: &["node"],
        install: "npm install --global pnpm",
        ..PLAIN
    },
    ToolRow {
        name: "yarn",
        programs: &["yarn", "yarnpkg"],
        managers: NODE_MANAGERS,
        layout: Layout::NodePackage,
        needs: &["node"],
        install: "npm install --global yarn",
        ..PLAIN
    },
    ToolRow {
        name: "bun",
        programs: &["bun"],
        managers: &[
            place("BUN_INSTALL", ".bun", "bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/bun/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/bun/*/bin"),
        ],
        layout: Layout::Program,
        install: "npm install --global bun",
        ..PLAIN
    },
    ToolRow {
        name: "deno",
        programs: &["deno"],
        managers: &[
            place("DENO_INSTALL", ".deno", "bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/deno/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/deno/*/bin"),
        ],
        layout: Layout::Program,
        install: "npm install --global deno",
        ..PLAIN
    },
    ToolRow {
        name: "python",
        programs: &["python3", "python"],
        prefix_args: Some(&["-I", "-c", "import sys; sys.stdout.write(sys.base_prefix)"]),
        managers: &[
            place("PYENV_ROOT", ".pyenv", "versions/*/bin"),
            place("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", "*/bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/python/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/python/*/bin"),
        ],
        layout: PYTHON_PARTS,
        shared_parts: Some(&["lib/python3*", "lib/libpython3*", "include/python3*"]),
        env: &[("PYTHONDONTWRITEBYTECODE", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")],
        install: "pyenv install 3.12, uv python install 3.12, or apt install python3 python3-venv",
        ..PLAIN
    },
    ToolRow {
        name: "uv",
        programs: &["uv"],
        managers: &[
            place("UV_INSTALL_DIR", ".local/bin", ""),
            place("CARGO_HOME", ".cargo", "bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/uv/*"),
        ],
        layout: Layout::Program,
        env: &[("UV_PYTHON_DOWNLOADS", "never")],
        needs: &["python"],
        install: "python3 -m pip install --user uv",
        ..PLAIN
    },
    ToolRow {
        name: "poetry",
        programs: &["poetry"],
        managers: &[
            place("POETRY_HOME", ".local/share/pypoetry", "venv/bin"),
            place("PIPX_HOME", ".local/share/pipx", "venvs/poetry/bin"),
        ],
        layout: Layout::VirtualEnvironment,
        needs: &["python"],
        install: "pipx install poetry",
        ..PLAIN
    },
    ToolRow {
        name: "go",
        programs: &["go"],
        version_args: &["version"],
        prefix_args: Some(&["env", "GOROOT"]),
        prefix_variables: &["GOROOT"],
        managers: &[
            place("", "", "/usr/local/go/bin"),
            place("", "", "/usr/lib/go-*/bin"),
            place("GOPATH", "go", "bin"),
            place("", "sdk", "*/bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/go/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/golang/*/go/bin"),
        ],
        layout: Layout::Prefix(&["VERSION", "api", "bin", "lib", "misc", "pkg", "src", "test"]),
        env: &[("GOROOT", "{prefix}"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "-buildvcs=false")],
        install: "install Go from https://go.dev/dl, or apt install golang-go",
        ..PLAIN
    },
    ToolRow {
        name: "rust",
        programs: &["rustc"],
        prefix_args: Some(&["--print", "sysroot"]),
        managers: &[place("RUSTUP_HOME", ".rustup", "toolchains/*/bin")],
        layout: Layout::Prefix(&["bin", "lib", "libexec", "share"]),
        shared_parts: Some(&["lib/rustlib", "lib/librustc_driver-*", "lib/libLLVM*"]),
        install: "rustup toolchain install stable, or apt install rustc cargo",
        ..PLAIN
    },
    ToolRow {
        name: "java",
        programs: &["java"],
        version_args: &["-version"],
        prefix_variables: &["JAVA_HOME"],
        managers: &[
            place("SDKMAN_DIR", ".sdkman", "candidates/java/*/bin"),
            place("", "", "/usr/lib/jvm/*/bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/java/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/java/*/bin"),
        ],
        layout: JAVA_PARTS,
        env: &[("JAVA_HOME", "{prefix}")],
        system_files: &["/etc/java-{major}-openjdk"],
        install: "sdk install java, or apt install openjdk-21-jdk-headless",
        ..PLAIN
    },
    ToolRow {
        name: "maven",
        programs: &["mvn"],
        version_args: &["-version"],
        managers: &[
            place("SDKMAN_DIR", ".sdkman", "candidates/maven/*/bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/maven/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/maven/*/bin"),
        ],
        layout: Layout::Prefix(&["bin", "boot", "conf/logging", "lib"]),
        needs: &["java"],
        system_files: &["/etc/maven/m2.conf", "/etc/maven/logging"],
        install: "sdk install maven, or apt install maven",
        ..PLAIN
    },
    ToolRow {
        name: "gradle",
        programs: &["gradle"],
        managers: &[
            place("SDKMAN_DIR", ".sdkman", "candidates/gradle/*/bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/gradle/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/gradle/*/bin"),
        ],
        layout: Layout::Prefix(&["bin", "lib"]),
        env: &[("GRADLE_OPTS", "-Dorg.gradle.daemon=false")],
        needs: &["java"],
        install: "sdk install gradle",
        ..PLAIN
    },
    ToolRow {
        name: "ruby",
        programs: &["ruby"],
        prefix_args: Some(&["-e", "print RbConfig::CONFIG['prefix']"]),
        managers: &[
            place("RBENV_ROOT", ".rbenv", "versions/*/bin"),
            place("MISE_DATA_DIR", ".local/share/mise", "installs/ruby/*/bin"),
            place("ASDF_DATA_DIR", ".asdf", "installs/ruby/*/bin"),
        ],
        shared_parts: Some(&["lib/ruby", "lib/libruby*"]),
        install: "rbenv install 3.3.0, or apt install ruby-full",
        ..PLAIN
    },
    ToolRow {
        name: "php",
        programs: &["php"],
        managers: &[place("ASDF_DATA_DIR", ".asdf", "installs/php/*/bin")],
        shared_parts: Some(&["lib/php"]),
        install: "apt install php-cli composer",
        ..PLAIN
    },
    ToolRow {
        name: "dotnet",
        programs: &["dotnet"],
        prefix_variables: &["DOTNET_ROOT"],
        managers: &[place("DOTNET_ROOT", ".dotnet", ""), place("", "", "/usr/lib/dotnet")],
        layout: Layout::Directory(&[
            "dotnet",
            "host",
            "packs",
            "sdk",
            "sdk-manifests",
            "shared",
            "templates",
        ]),
        env: &[("DOTNET_ROOT", "{prefix}"), ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"), ("DOTNET_NOLOGO", "1")],
        install: "apt install dotnet-sdk-8.0",
        ..PLAIN
    },
    ToolRow {
        name: "gcc",
        programs: &["gcc", "cc"],
        version_args: &["-dumpfullversion"],
        shared_parts: Some(&["lib/gcc", "libexec/gcc"]),
        install: "apt install build-essential",
        ..PLAIN
    },
    ToolRow {
        name: "make",
        programs: &["make", "gmake"],
        shared_parts: Some(&[]),
        install: "apt install make",
        ..PLAIN
    },
    ToolRow {
        name: "cmake",
        programs: &["cmake"],
        shared_parts: Some(&["share/cmake*"]),
        install: "apt install cmake",
        ..PLAIN
    },
];
