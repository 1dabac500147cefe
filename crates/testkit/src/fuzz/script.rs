//! Fuzzes the parser of scripts for `fake`.

use herma_engines::fake::Script;

/// Any bytes are a script, the same one each time, or an error that points into the file.
pub fn script(input: &[u8]) {
    let parsed = Script::parse(input);
    assert_eq!(Script::parse(input), parsed);
    if let Err(bad) = parsed {
        assert!(!bad.problem.is_empty());
        if let Some((line, column)) = bad.place {
            assert!(super::is_in(input, line, column), "{bad:?} is not in the file");
        }
    }
}
