//! The report's statement about the capabilities that the contract needs.

use herma_core::Status;
use herma_core::blocker::Blocker;
use herma_core::capability::Capability::{self, Mcp, Resume, ToolHooks};
use herma_core::capability::Support::{self, Native, Translated, Unsupported};
use herma_evidence::verify::CheckName as C;
use herma_evidence::{layout, render_markdown};

use crate::sample::{CONTRACT, Sample, failed, pass, pass_on};

/// A bundle of a contract with two needs, whose report states this about them.
fn needing(said: &[(Capability, Support)], status: Status) -> Sample {
    let contract = CONTRACT.replacen("stage: 2\n", "stage: 2\nneeds: [tool_hooks, resume]\n", 1);
    pass_on(&contract, None, |report| {
        report.needs = said.iter().copied().collect();
        report.status = status;
        if status == Status::Fail {
            report.blockers = vec![Blocker::EngineFailed.because("exit 1")];
        }
    })
}

#[test]
fn a_pass_whose_engine_has_what_the_contract_needs_holds() {
    for said in [[(ToolHooks, Native), (Resume, Native)], [(ToolHooks, Translated), (Resume, Translated)]] {
        let list = needing(&said, Status::Pass).verify();
        assert!(list.ok(), "{list:#?}");
    }
}

#[test]
fn a_pass_without_what_the_contract_needs_is_a_lie() {
    for (said, named) in [
        (&[][..], "`tool_hooks`"),
        (&[(ToolHooks, Native)], "`resume`"),
        (&[(ToolHooks, Unsupported), (Resume, Native)], "`tool_hooks`"),
        (&[(ToolHooks, Translated), (Resume, Unsupported)], "`resume`"),
        (&[(ToolHooks, Native), (Resume, Native), (Mcp, Native)], "`mcp`"),
    ] {
        let list = needing(said, Status::Pass).verify();
        assert_eq!(failed(&list), [C::Agreement], "{said:?}");
        let why = &list.failed().next().unwrap().detail;
        assert!(why.contains(named), "{said:?}: {why}");
    }
}

#[test]
fn a_run_without_a_pass_may_lack_needs_and_names_no_others() {
    for said in [&[][..], &[(ToolHooks, Unsupported), (Resume, Native)]] {
        let list = needing(said, Status::Fail).verify();
        assert!(list.ok(), "{list:#?}");
    }
    assert_eq!(failed(&needing(&[(Mcp, Native)], Status::Fail).verify()), [C::Agreement]);
    assert_eq!(failed(&pass(|report| report.needs = [(Resume, Native)].into()).verify()), [C::Agreement]);
}

/// A report of before there was the field reads the same: where nothing is needed, nothing is written.
#[test]
fn a_report_of_a_contract_without_needs_does_not_have_the_key() {
    let sample = pass(|_| {});
    let text = std::fs::read_to_string(sample.dir().join(layout::REPORT)).unwrap();
    assert!(!text.contains("\"needs\""), "{text}");
    assert!(sample.verify().ok());
    assert!(!render_markdown(&sample.report).contains("| needs |"));
}

#[test]
fn the_page_explains_translated_capabilities() {
    let said = [(ToolHooks, Translated), (Resume, Native), (Mcp, Unsupported)];
    let page = render_markdown(&needing(&said, Status::Fail).report);
    let line = page.lines().find(|line| line.starts_with("| needs |")).unwrap();
    assert_eq!(
        line,
        "| needs | `resume`: native; `tool_hooks`: translated, by a program of herma's and other means of the agent; \
         `mcp`: unsupported by this engine |"
    );
}
