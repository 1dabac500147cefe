//! Bad scripts, and their errors.

use herma_scripted::{MAX_BYTES, Scripted};

/// Every mistake with its error, one under the other.
fn errors(scripts: &[&str]) -> String {
    let told = |script: &&str| {
        let error = Scripted::parse(script.as_bytes()).expect_err(script);
        format!("{}\n    {error}", script.trim_end())
    };
    scripts.iter().map(told).collect::<Vec<String>>().join("\n")
}

/// The same for single turns.
fn turns(turns: &[&str]) -> String {
    let told = |turn: &&str| {
        let script = format!("name: a\nturns:\n  - {turn}\n");
        let error = Scripted::parse(script.as_bytes()).expect_err(turn);
        format!("{turn}\n    {error}")
    };
    turns.iter().map(told).collect::<Vec<String>>().join("\n")
}

#[test]
fn unknown_keys_are_named_with_their_place() {
    insta::assert_snapshot!(errors(&[
        "nam: a\nturns: [{ say: hi }]\n",
        "name: a\nturns: [{ say: hi }]\nsides: { say: hi }\n",
        "name: a\nmatch: { maker: x }\nturns: [{ say: hi }]\n",
        "name: a\nturns:\n  - say: hi\n  - sya: hi\n",
        "name: a\nturns:\n  - call: { shel: ls }\n",
        "name: a\nturns:\n  - call: { write: { path: a, content: b } }\n",
        "name: a\nturns:\n  - error: { status: 500, retry: 2s }\n",
        "name: a\nturns:\n  - delay: { firstbyte: 2s }\n    say: hi\n",
        "name: a\nturns:\n  - usage: { input: 1, outputs: 2 }\n    say: hi\n",
        "name: a\nturns: [{ say: hi }]\nside: { says: hi }\n",
    ]));
}

#[test]
fn scripts_of_the_wrong_shape_are_refused() {
    insta::assert_snapshot!(errors(&[
        "",
        "turns: [{ say: hi }]\n",
        "name: a\n",
        "name: A b\nturns: [{ say: hi }]\n",
        "name: a\nturns: []\n",
        "name: a\nturns: hi\n",
        "name: a\nturns: [hi]\n",
        "name: a\nname: b\nturns: [{ say: hi }]\n",
        "name: a\nturns: [{ say: hi }]\n---\nname: b\n",
        "name: &a a\nturns: [{ say: *a }]\n",
        "name: a\nmatch: { marker: ' ' }\nturns: [{ say: hi }]\n",
        "name: a\nrepeat: yes\nturns: [{ say: hi }]\n",
    ]));
}

#[test]
fn turns_that_mean_nothing_are_refused() {
    insta::assert_snapshot!(turns(&[
        "{}",
        "delay: 2s",
        "{ empty: true, say: hi }",
        "{ empty: true, error: 500 }",
        "{ say: hi, error: 500 }",
        "{ error: 500, times: 2 }",
        "{ say: hi, times: 2 }",
        "{ say: hi, times: 0, malformed: true }",
        "{ say: hi, cut: { after_bytes: 1 }, malformed: true }",
        "{ say: hi, cut: true }",
        "{ call: { shell: ls }, calls: [{ shell: ls }] }",
        "calls: []",
        "call: { shell: ls, read: a }",
        "call: { tool: { name: x } }",
        "call: { tool: { name: x, arguments: { a: 1 }, text: b } }",
        "call: { tool: { name: x, arguments: [1] } }",
        "{ refuse: no, say: yes }",
        "{ call: { shell: ls }, forever: text }",
        "{ say: hi, forever: always }",
        "error: 200",
        "error: { status: 600 }",
        "error: nope",
        "{ say: hi, delay: 2 }",
        "{ say: hi, chunk: 0 }",
        "{ say: hi, usage: { input: 1 } }",
        "{ say: hi, usage: { input: 1, output: 1, cached: 2 } }",
        "{ say: hi, usage: { input: 1, output: 1, reasoning: 2 } }",
        "{ say: hi, usage: { input: 18446744073709551615, output: 1 } }",
        "{ say: hi, stop: tired }",
    ]));
}

#[test]
fn oversized_and_non_text_input_is_refused() {
    let error = |bytes: &[u8]| Scripted::parse(bytes).unwrap_err().to_string();
    insta::assert_snapshot!(error(b"name: a\nturns: \xff"), @"line 2, column 8: the file is not UTF-8");
    insta::assert_snapshot!(error(&vec![b'#'; MAX_BYTES + 1]), @"the file has 8388609 bytes; expected at most 8388608");
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    let deep =
        format!("name: a\nturns: [{{ call: {{ tool: {{ name: x, arguments: {{ a: {open}{close} }} }} }} }}]");
    assert!(error(deep.as_bytes()).contains("too complex"), "{}", error(deep.as_bytes()));
}
