//! The table of real projects: where each comes from, and the change that its agent makes.

use std::path::Path;

use serde_json::{Value, json};

use super::source::Source;

/// A project, and a task for which its own tests are the judge.
pub(super) struct Project {
    /// The name of its repository.
    pub(super) name: &'static str,
    pub(super) source: Source,
    /// The task in one line, by which the scripted model knows it.
    pub(super) title: &'static str,
    /// The source file that the agent edits.
    pub(super) path: &'static str,
    old: &'static str,
    new: &'static str,
    /// The test file that it adds, which fails on the base.
    pub(super) test: Option<(&'static str, &'static str)>,
    /// How many tests its suite has, at least.
    pub(super) min_tests: usize,
    /// Whether its tests need packages from a registry.
    pub(super) needs_packages: bool,
    /// The page on which it is the example.
    pub(super) page: Option<&'static str>,
}

pub(super) const PROJECTS: &[Project] = &[
    Project {
        name: "itsdangerous",
        source: Source::Pypi("itsdangerous==2.2.0"),
        title: "want_bytes() returns a bytearray as it is",
        path: "src/itsdangerous/encoding.py",
        old: "        s = s.encode(encoding, errors)\n\n    return s\n",
        new: "        s = s.encode(encoding, errors)\n\n    return bytes(s)\n",
        test: Some((
            "tests/test_itsdangerous/test_bytearray.py",
            "from itsdangerous.encoding import want_bytes\n\n\ndef test_bytearray_becomes_bytes():\n    assert type(want_bytes(bytearray(b\"a\"))) is bytes\n",
        )),
        min_tests: 290,
        needs_packages: true,
        page: Some("python"),
    },
    Project {
        name: "click",
        source: Source::Pypi("click==8.1.7"),
        title: "BOOL does not know enabled and disabled",
        path: "src/click/types.py",
        old: "        if norm in {\"1\", \"true\", \"t\", \"yes\", \"y\", \"on\"}:",
        new: "        if norm in {\"1\", \"true\", \"t\", \"yes\", \"y\", \"on\", \"enabled\"}:",
        test: Some((
            "tests/test_enabled.py",
            "import click\n\n\ndef test_enabled():\n    assert click.BOOL.convert(\"enabled\", None, None) is True\n",
        )),
        min_tests: 500,
        needs_packages: true,
        page: None,
    },
    Project {
        name: "markupsafe",
        source: Source::Pypi("markupsafe==2.1.5"),
        title: "the help of the compiled escape() does not say that it is compiled",
        path: "src/markupsafe/_speedups.c",
        old: "\"Replace the characters ``&``, ``<``, ``>``, ``'``, and ``\\\"`` in\"",
        new: "\"Compiled: replace the characters ``&``, ``<``, ``>``, ``'``, and ``\\\"`` in\"",
        // It passes only where the extension was compiled from the result.
        test: Some((
            "tests/test_compiled.py",
            "from markupsafe import _speedups\n\n\ndef test_help():\n    assert _speedups.escape.__doc__.startswith(\"Compiled\")\n",
        )),
        min_tests: 50,
        needs_packages: true,
        page: None,
    },
    Project {
        name: "packaging",
        source: Source::Pypi("packaging==24.1"),
        title: "canonicalize_name() keeps spaces around a name",
        path: "src/packaging/utils.py",
        old: "_canonicalize_regex.sub(\"-\", name).lower()",
        new: "_canonicalize_regex.sub(\"-\", name.strip()).lower()",
        // Its suite takes long, and runs twice where tests changed.
        test: None,
        min_tests: 10_000,
        needs_packages: true,
        page: None,
    },
    Project {
        name: "bytes",
        source: Source::Debian("node-bytes"),
        title: "bytes() does not know big integers",
        path: "index.js",
        old: "    return parse(value);\n  }\n",
        new: "    return parse(value);\n  }\n\n  if (typeof value === 'bigint') {\n    return format(Number(value), options);\n  }\n",
        test: Some((
            "test/bigint.js",
            "'use strict'\n\nvar assert = require('assert')\nvar bytes = require('..')\n\ndescribe('a big integer', function () {\n  it('is formatted', function () {\n    assert.equal(bytes(BigInt(1024)), '1KB')\n  })\n})\n",
        )),
        min_tests: 30,
        needs_packages: true,
        page: None,
    },
    Project {
        name: "accepts",
        source: Source::Debian("node-accepts"),
        title: "types() has no other name that says what a type is",
        path: "index.js",
        old: "Accepts.prototype.type =\n",
        new: "Accepts.prototype.type =\nAccepts.prototype.mediaTypes =\n",
        test: Some((
            "test/media.js",
            "'use strict'\n\nvar accepts = require('..')\nvar assert = require('assert')\n\ndescribe('accepts.mediaTypes()', function () {\n  it('is types()', function () {\n    var accept = accepts({ headers: { accept: 'text/html' } })\n    assert.deepEqual(accept.mediaTypes(), ['text/html'])\n  })\n})\n",
        )),
        min_tests: 30,
        needs_packages: true,
        page: Some("node"),
    },
    Project {
        name: "semver",
        source: Source::Crate("semver", "1.0.23"),
        title: "nothing says whether a version is stable",
        path: "src/lib.rs",
        old: "/// The default VersionReq is the same as [`VersionReq::STAR`].\n",
        new: "impl Version {\n    /// Whether this is no pre-release of anything, and not before 1.0.\n    pub fn is_stable(&self) -> bool {\n        self.major > 0 && self.pre.is_empty()\n    }\n}\n\n/// The default VersionReq is the same as [`VersionReq::STAR`].\n",
        test: Some((
            "tests/test_stable.rs",
            "use semver::Version;\n\n#[test]\nfn test_stable() {\n    assert!(Version::new(1, 0, 0).is_stable());\n    assert!(!Version::new(0, 9, 0).is_stable());\n    assert!(!Version::parse(\"1.0.0-rc.1\").unwrap().is_stable());\n}\n",
        )),
        min_tests: 30,
        needs_packages: false,
        page: Some("rust"),
    },
    Project {
        name: "memchr",
        source: Source::Crate("memchr", "2.8.3"),
        title: "the example of memchr() does not show a byte that is not there",
        path: "src/memchr.rs",
        old: "/// assert_eq!(memchr(b'k', haystack), Some(8));\n",
        new: "/// assert_eq!(memchr(b'k', haystack), Some(8));\n/// assert_eq!(memchr(b'z', haystack), None);\n",
        test: None,
        min_tests: 100,
        needs_packages: true,
        page: None,
    },
    Project {
        name: "cobra",
        source: Source::GoModule("github.com/spf13/cobra", "v1.8.1"),
        title: "RangeArgs says nothing about a range that is empty",
        path: "args.go",
        old: "\t\tif len(args) < min || len(args) > max {\n",
        new: "\t\tif min > max {\n\t\t\treturn fmt.Errorf(\"no number of args is between %d and %d\", min, max)\n\t\t}\n\t\tif len(args) < min || len(args) > max {\n",
        test: Some((
            "args_range_test.go",
            "package cobra\n\nimport (\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestEmptyRange(t *testing.T) {\n\terr := RangeArgs(2, 1)(&Command{}, nil)\n\tif err == nil || !strings.Contains(err.Error(), \"no number\") {\n\t\tt.Fatalf(\"unexpected: %v\", err)\n\t}\n}\n",
        )),
        min_tests: 100,
        needs_packages: true,
        page: Some("go"),
    },
    Project {
        name: "commons-csv",
        source: Source::Debian("commons-csv"),
        title: "a CSVRecord does not say whether it is empty",
        path: "src/main/java/org/apache/commons/csv/CSVRecord.java",
        old: "    public int size() {\n        return values.length;\n    }\n",
        new: "    public int size() {\n        return values.length;\n    }\n\n    /**\n     * Whether this record has no value.\n     *\n     * @return whether it has none.\n     */\n    public boolean isEmpty() {\n        return values.length == 0;\n    }\n",
        test: Some((
            "src/test/java/org/apache/commons/csv/CSVRecordEmptyTest.java",
            "package org.apache.commons.csv;\n\nimport static org.junit.jupiter.api.Assertions.assertFalse;\n\nimport java.io.StringReader;\n\nimport org.junit.jupiter.api.Test;\n\npublic class CSVRecordEmptyTest {\n    @Test\n    public void testOneValue() throws Exception {\n        assertFalse(CSVFormat.DEFAULT.parse(new StringReader(\"a\")).iterator().next().isEmpty());\n    }\n}\n",
        )),
        min_tests: 300,
        needs_packages: true,
        page: Some("java"),
    },
    Project {
        name: "cjson",
        source: Source::Debian("cjson"),
        title: "cJSON_Version() has room for three digits of each number only",
        path: "cJSON.c",
        old: "    static char version[15];\n",
        new: "    static char version[3 * 11 + 3];\n",
        test: None,
        min_tests: 15,
        needs_packages: false,
        page: Some("c"),
    },
    Project {
        name: "jansson",
        source: Source::Debian("jansson"),
        title: "the comparison of versions has no test of equal major versions",
        path: "test/suites/api/test_version.c",
        old: "static void test_version_cmp() {\n",
        new: "static void test_version_cmp(void) {\n    if (jansson_version_cmp(JANSSON_MAJOR_VERSION, 0, 0) < 0) {\n        fail(\"an equal major version is not less\");\n    }\n\n",
        test: None,
        min_tests: 30,
        needs_packages: false,
        page: None,
    },
];

/// The project of this name.
pub(super) fn named(name: &str) -> &'static Project {
    PROJECTS.iter().find(|project| project.name == name).unwrap()
}

impl Project {
    /// The script of the model, which reads the file, edits it and adds the test.
    pub(super) fn script(&self, model: &str) -> Value {
        let edit = json!({ "path": self.path, "old": self.old, "new": self.new });
        let mut turns = vec![json!({ "call": { "read": self.path } }), json!({ "call": { "edit": edit } })];
        turns.extend(
            self.test.map(|(path, text)| json!({ "call": { "write": { "path": path, "text": text } } })),
        );
        turns.push(json!({ "say": "It is done." }));
        json!({ "name": self.name, "models": [model], "match": { "marker": self.title }, "turns": turns })
    }

    /// Whether its source files have this extension.
    fn is_in(&self, extension: &str) -> bool {
        Path::new(self.path).extension().is_some_and(|found| found == extension)
    }

    /// The files that change.
    pub(super) fn changed(&self) -> Vec<&'static str> {
        let mut paths = vec![self.path];
        paths.extend(self.test.map(|(path, _)| path));
        paths.sort_unstable();
        paths
    }
}

/// The mix that the table must have, so that no ecosystem is left out.
#[test]
fn the_table_of_projects_has_every_ecosystem() {
    let count = |is: fn(&Project) -> bool| PROJECTS.iter().filter(|project| is(project)).count();
    assert!(count(|project| matches!(project.source, Source::Pypi(_))) >= 3);
    assert!(count(|project| matches!(project.source, Source::Crate(..))) >= 2);
    assert!(count(|project| project.is_in("js")) >= 2);
    assert!(count(|project| matches!(project.source, Source::GoModule(..))) >= 1);
    assert!(count(|project| project.is_in("java")) >= 1);
    assert!(count(|project| matches!(project.source, Source::Debian(_)) && project.is_in("c")) >= 1);
    assert!(count(|project| project.needs_packages) >= 7);
    assert!(count(|project| project.min_tests >= 100) >= 5);
    assert!(PROJECTS.len() >= 10);
}
