//! Fuzzes the contract parser and the canonical form.

use herma_core::Contract;
use herma_rules::PathRules;
use serde_json::Value;

/// Any bytes are a contract or an error that points into the file. A contract has a digest, and its canonical form,
/// written as a contract again, has the same one.
pub fn contract(input: &[u8]) {
    let contract = match Contract::parse(input) {
        Ok(contract) => contract,
        Err(bad) => {
            assert!(!bad.problem.is_empty(), "{bad:?}");
            if let (Some(line), Some(column)) = (bad.line, bad.column) {
                assert!(super::is_in(input, line, column), "{bad:?} is not in the file");
            }
            return;
        }
    };
    let canonical = contract.canonical().expect("a contract has a canonical form");
    let digest = contract.digest().expect("a contract has a digest");
    let again = Contract::parse(input).expect("what was read once is read again");
    assert_eq!((&again, again.canonical().ok().as_ref()), (&contract, Some(&canonical)));
    let _ = PathRules::compile(&contract.terms);

    let form: Value = serde_json::from_slice(&canonical).expect("the canonical form is JSON");
    assert_eq!(form["brief"], contract.brief.as_str());
    // JSON is YAML as long as it has no characters that YAML escapes in another way.
    let terms = form["terms"].to_string();
    if terms.bytes().all(|b| (b' '..=b'~').contains(&b)) && !terms.contains('\\') {
        let written = format!("---\n{terms}\n---\n{}", contract.brief);
        let read = Contract::parse(written.as_bytes()).expect("the canonical form can be read");
        assert_eq!(read.digest().ok(), Some(digest), "{written}");
    }
}
