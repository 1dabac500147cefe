//! The scripts and configuration files that verification commands name.

use herma_core::RepoPath;

use crate::action_shapes::{SHELLS, WRAPPERS};
use crate::shell::{Simple, split};

/// Programs that run the file that they get as their first argument.
const INTERPRETERS: &str = "sh bash dash zsh ksh ash fish pwsh python python2 python3 pypy pypy3 node nodejs deno bun tsx ts-node ruby \
    perl php lua luajit Rscript julia elixir escript groovy kotlinc scala swift osascript tclsh guile racket sbcl bats \
    shellspec . source";

/// Options whose value is a file that influences the program.
const OPTIONS: &str = "-c -f -p -r -s --config --config-file --config-path --configuration --file --makefile --project --require \
    --import --rcfile --settings --setup --script --rootdir --tsconfig --manifest-path --build-file --init-script --preload \
    --loader --experimental-loader --env-file --spec --suite --testsuite";

/// Programs that read the files which they name, and run none of them.
const READERS: &str = "test [ grep egrep fgrep rg cut sort uniq diff cmp cat ls stat wc head tail tr tar jq cp mv rm mkdir touch echo \
    printf";

/// The subcommands of a wrapper before the command that it runs, as in `uv run` and `bundle exec`.
const SUBCOMMANDS: &str = "run exec dlx x tool";

/// The maximum nesting of scripts.
const MAX_NESTING: usize = 8;

/// The files that commands name, each as the end of a path.
#[derive(Debug, Default)]
pub(super) struct NamedFiles {
    files: Vec<String>,
}

impl NamedFiles {
    pub(super) fn of<'a>(commands: impl IntoIterator<Item = &'a str>) -> Self {
        let mut named = Self::default();
        for command in commands {
            named.read(command, MAX_NESTING);
        }
        named
    }

    /// Whether a command names the path, from the root or from a directory that it changed to.
    pub(super) fn has(&self, path: &RepoPath) -> bool {
        let path = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
        self.files.iter().any(|file| ends_with(&path, file))
    }

    fn read(&mut self, script: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let pieces = split(script);
        for command in &pieces.commands {
            self.read_command(command, depth);
        }
        for nested in &pieces.nested {
            self.read(nested, depth);
        }
    }

    fn read_command(&mut self, command: &Simple, depth: usize) {
        let mut words = &command.words[..];
        // The arguments of a wrapper cannot be told from the command that it runs: all of them are checked.
        while let [first, rest @ ..] = words {
            let name = program(first);
            // Without a `/` it is looked for on the path, on which the checkout is not.
            if first.contains('/') {
                self.name(first);
            }
            if has(INTERPRETERS, name) {
                self.read_arguments(name, rest, depth);
                return;
            }
            let goes_on = is_assignment(first) || has(WRAPPERS, name) || has(SUBCOMMANDS, name);
            if !goes_on && !first.starts_with('-') && !is_amount(first) {
                break;
            }
            words = rest;
        }
        if !words.first().is_some_and(|first| has(READERS, program(first))) {
            self.read_options(words);
        }
    }

    /// The script that an interpreter runs, whether it is a file, a module or a text.
    fn read_arguments(&mut self, name: &str, arguments: &[String], depth: usize) {
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "-m" if name.starts_with("py") => {
                    rest.next().into_iter().for_each(|module| self.module(module));
                    break;
                }
                text if has(SHELLS, name) && text.starts_with('-') && text.ends_with('c') => {
                    rest.next().into_iter().for_each(|script| self.read(script, depth));
                    break;
                }
                option if option.starts_with('-') => {}
                file => {
                    self.name(file);
                    break;
                }
            }
        }
        self.read_options(arguments);
    }

    fn read_options(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            match word.split_once('=') {
                Some((option, value)) if has(OPTIONS, option) => self.name(value),
                None if has(OPTIONS, word) => {
                    words.get(at + 1).into_iter().for_each(|value| self.name(value));
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, word: &str) {
        let mut names: Vec<&str> = Vec::new();
        for name in word.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        if !names.is_empty() {
            self.files.push(names.join("/").to_lowercase());
        }
    }

    /// `python -m a.b` runs `a/b.py`, or `a/b/__main__.py`, after the `__init__.py` of both.
    fn module(&mut self, module: &str) {
        let path = module.replace('.', "/");
        self.name(&format!("{path}.py"));
        self.name(&format!("{path}/__main__.py"));
        for (at, _) in path.match_indices('/').chain([(path.len(), "")]) {
            self.name(&format!("{}/__init__.py", &path[..at]));
        }
    }
}

/// Whether a path ends with these names, in which a `*` is any part of a name.
fn ends_with(path: &str, file: &str) -> bool {
    let mut names = path.rsplit('/');
    file.rsplit('/').all(|pattern| names.next().is_some_and(|name| matches(name, pattern)))
}

fn matches(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(&rest[at..], after))
        }),
    }
}

fn program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    // `python3.11` is a `python3`.
    if name.starts_with("python") { name.split('.').next().unwrap_or(name) } else { name }
}

fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && !name.starts_with('-') && !name.contains('/'))
}

/// A number, or a length of time as `timeout` takes it.
fn is_amount(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.trim_end_matches(['s', 'm', 'h', 'd']).parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_or_configuration_that_a_command_names_is_found() {
        for (command, path) in [
            ("sh check.sh", "check.sh"),
            ("sh ./ci/check.sh --fast", "ci/check.sh"),
            ("./ci/check", "ci/check"),
            ("cd sub && bash -eu check.sh", "sub/check.sh"),
            ("FOO=1 timeout 30s env BAR=2 python3.11 -u tools/check.py x", "tools/check.py"),
            ("python -m tools.check", "tools/check.py"),
            ("python3 -m tools.check", "tools/check/__main__.py"),
            ("python3 -m tools.check", "tools/__init__.py"),
            ("sh -c 'node scripts/check.js'", "scripts/check.js"),
            ("bash -ec 'x=$(ruby tools/count.rb)'", "tools/count.rb"),
            ("for t in a b; do sh ci/run.sh $t || exit; done", "ci/run.sh"),
            ("if ! ci/run; then exit 1; fi", "ci/run"),
            ("make -f build/rules.txt check", "build/rules.txt"),
            ("eslint --config=lint/rules.js .", "lint/rules.js"),
            ("sh ci/*.sh", "ci/one.sh"),
            ("SH=x sh CHECK.sh", "check.SH"),
            ("cat a | sh b/../check.sh", "check.sh"),
            (". ./env.inc && true", "env.inc"),
            ("uv run python tools/check.py", "tools/check.py"),
        ] {
            assert!(NamedFiles::of([command]).has(&RepoPath::new(path).unwrap()), "{command}: {path}");
        }
    }

    #[test]
    fn files_that_a_command_only_reads_are_not_included() {
        for (command, path) in [
            ("grep -qx 'hello, world' greeting.txt", "greeting.txt"),
            ("test -f out.txt", "out.txt"),
            ("sh check.sh data.csv", "data.csv"),
            ("sh check.sh", "recheck.sh"),
            ("cargo test --offline", "src/test.rs"),
            ("cat src/a.py", "src/a.py"),
            ("make check", "tools/make"),
            ("echo \"sh check.sh\"", "check.sh"),
        ] {
            assert!(!NamedFiles::of([command]).has(&RepoPath::new(path).unwrap()), "{command}: {path}");
        }
    }
}
