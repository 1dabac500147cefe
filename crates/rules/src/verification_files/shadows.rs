//! Modules in the place of a test runner, or of what it loads: where a new one is found first, the runner is not the runner.

use herma_core::RepoPath;

use crate::glob::{PathKind, prefixes};

/// Directories that Python looks for modules in, as `python -m`, `PYTHONPATH=src` and test runners have it.
pub const PYTHON_ROOTS: &[&str] = &["", "src/", "lib/", "python/"];

/// Test runners, linters, and what they load, by the names of their Python modules.
pub const PYTHON_RUNNERS: &str = "pytest _pytest py pluggy iniconfig packaging pytest_cov pytest_asyncio xdist hypothesis nose nose2 \
    unittest2 testtools tox nox twisted behave robot ward green coverage mypy ruff black flake8 pycodestyle pyflakes pylint astroid \
    isort pyright bandit pip setuptools pkg_resources wheel build exceptiongroup tomli";

/// The modules of Python's standard library, from `sys.stdlib_module_names` of 3.11, without those that start with `_`.
pub const PYTHON_LIBRARY: &str = "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb \
    binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall \
    concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib \
    dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp \
    importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math \
    mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator \
    optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile \
    pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy \
    sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 \
    sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig \
    syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace \
    traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref \
    webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// The last parts of names that Python loads as a module.
const PYTHON_ENDINGS: &[&str] = &["py", "pyc", "pyi", "so", "pyd"];

/// The same for other languages, by tool: the ends of paths, of directories where they end with `/`.
#[rustfmt::skip]
pub const SHADOWS: &[(&str, &[&str])] = &[
    ("JUnit", &["org/junit/", "junit/framework/", "junit/runner/"]),
    ("TestNG, Hamcrest, AssertJ, Mockito", &["org/testng/", "org/hamcrest/", "org/assertj/", "org/mockito/"]),
    ("ScalaTest, Spock, kotlin.test", &["org/scalatest/", "spock/lang/", "org/spockframework/", "kotlin/test/"]),
    ("PHPUnit", &["phpunit/framework/"]),
    ("RSpec and Minitest", &["rspec.rb", "lib/rspec/", "rspec/core/", "minitest.rb", "lib/minitest/", "test-unit.rb", "lib/bundler/", "lib/rake/"]),
    ("GoogleTest, Catch2, doctest", &["gtest/", "gmock/", "catch2/", "catch.hpp", "doctest.h"]),
    ("busted and LuaUnit", &["busted/", "busted.lua", "luaunit.lua"]),
];

/// Whether a new file at this path is found in the place of a test runner, or of what it loads.
pub(super) fn shadows_a_runner(path: &RepoPath) -> bool {
    let text = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    PYTHON_ROOTS.iter().any(|root| text.strip_prefix(root).is_some_and(is_python_module))
        || ends_like_a_runner(&text)
}

/// Whether a path below one of Python's roots is, or is in, a module of the lists.
fn is_python_module(path: &str) -> bool {
    let has = |list: &str, name: &str| list.split_whitespace().any(|known| known.eq_ignore_ascii_case(name));
    let known = |name: &str| has(PYTHON_RUNNERS, name) || has(PYTHON_LIBRARY, name);
    let ending = path.rsplit('.').next().unwrap_or_default();
    let module = match path.split_once('/') {
        Some((package, _)) => package,
        None => path.split('.').next().unwrap_or_default(),
    };
    PYTHON_ENDINGS.contains(&ending) && known(module)
}

fn ends_like_a_runner(path: &str) -> bool {
    let ends_with = |part: &[u8], end: &str| {
        part.strip_suffix(end.as_bytes()).is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
    };
    let fits = |end: &str| match end.strip_suffix('/') {
        Some(directory) => prefixes(path.as_bytes(), PathKind::Leaf)
            .any(|(part, kind)| kind == PathKind::Directory && ends_with(part, directory)),
        None => ends_with(path.as_bytes(), end),
    };
    SHADOWS.iter().flat_map(|(_, ends)| ends.iter()).any(|end| fits(end))
}
