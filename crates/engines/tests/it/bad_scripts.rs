//! Invalid scripts and their error messages.

use herma_engines::fake::{MAX_BYTES, Script};

/// Every mistake with its error, one under the other.
fn errors(scripts: &[&str]) -> String {
    let told = |script: &&str| {
        let error = Script::parse(script.as_bytes()).expect_err(script);
        format!("{}\n    {error}", script.trim_end())
    };
    scripts.iter().map(told).collect::<Vec<String>>().join("\n")
}

#[test]
fn unknown_keys_and_steps_are_named_with_their_place() {
    insta::assert_snapshot!(errors(&[
        "stepps: []\n",
        "steps: []\nresult: completed\n",
        "steps:\n  - say: hi\n  - wirte: { path: a, text: b }\n",
        "steps:\n  - frobnicate: yes\n",
        "steps:\n  - write: { path: a, txt: b }\n",
        "steps:\n  - shell: { command: x, might: true }\n",
        "steps:\n  - result: complete\n",
    ]));
}

#[test]
fn steps_of_the_wrong_shape_are_refused() {
    insta::assert_snapshot!(errors(&[
        "",
        "steps: fix\n",
        "steps:\n  - say\n",
        "steps:\n  - say: hi\n    print: there\n",
        "steps:\n  - say: hi\n  - say: [a]\n",
        "steps:\n  - rename: { from: a }\n",
        "steps:\n  - append: { path: a, text: b, text: c }\n",
        "steps:\n  - shell: { command: x, must: yes }\n",
        "steps:\n  - shell: [x]\n",
        "steps: []\n---\nsteps: []\n",
    ]));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    insta::assert_snapshot!(errors(&[
        "steps:\n  - write: { path: a }\n",
        "steps:\n  - write: { path: a, text: b, base64: Yg== }\n",
        "steps:\n  - write: { path: a, base64: \"%\" }\n",
        "steps:\n  - delete: \"\"\n",
        "steps:\n  - delete: 'a\\q'\n",
        "steps:\n  - chmod: { path: a, mode: \"rwx\" }\n",
        "steps:\n  - sleep: 2\n",
        "steps:\n  - flood: { bytes: lots }\n",
        "steps:\n  - exit: 256\n",
        "steps:\n  - repeat: { times: -1, steps: [] }\n",
    ]));
}

#[test]
fn an_unusable_model_name_is_refused() {
    insta::assert_snapshot!(errors(&[
        "steps:\n  - ask: hi\n",
        "steps:\n  - ask: { dialect: chat }\n",
        "steps:\n  - ask: { prompt: hi, dialect: chatt }\n",
        "steps:\n  - ask: { prompt: hi, streem: true }\n",
        "steps:\n  - ask: { prompt: hi, stream: yes }\n",
        "steps:\n  - ask: { prompt: hi, max_output: -1 }\n",
        "steps:\n  - ask: { prompt: hi, expect: 70000 }\n",
    ]));
}

#[test]
fn oversized_and_non_text_input_is_refused() {
    let error = |bytes: &[u8]| Script::parse(bytes).unwrap_err().to_string();
    insta::assert_snapshot!(error(b"steps:\n  - say: \xff"), @"line 2, column 10: the file is not UTF-8");
    insta::assert_snapshot!(error(&vec![b'#'; MAX_BYTES + 1]), @"the file has 8388609 bytes; expected at most 8388608");
    insta::assert_snapshot!(error(b"steps: [say: &a b, say: *a]"), @"line 1, column 17: the script is too complex (Anchors { anchors: 1 }); expected one document without anchors and aliases");
    insta::assert_snapshot!(error("[".repeat(100_000).as_bytes()), @"line 1, column 256: recursion limit exceeded");
}
