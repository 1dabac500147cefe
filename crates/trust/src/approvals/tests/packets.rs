//! Packets that are shown, and requests that cannot be.

use herma_core::Digest;
use herma_core::approval::ApprovalRequest;
use proptest::prelude::*;

use super::super::packet::{BadRequest, Packet, asker_signed};
use super::{Believes, CONTRACT, binding, granted, request, signed};

/// The digest of the policies for tool calls.
fn governance() -> Digest {
    Digest::of(b"governance")
}

fn packet() -> Packet {
    Packet::new(request(1), vec!["stage 3 was proven by run 1".to_owned()], governance()).unwrap()
}

/// A request for another contract, with everything that follows from it.
fn request_for(contract_text: &str) -> ApprovalRequest {
    let contract = herma_core::Contract::parse(contract_text.as_bytes()).unwrap();
    let mut request = request(1);
    let asked = binding();
    request.binding = super::bind(&super::BindingInput {
        contract: &contract,
        contract_digest: contract.digest().unwrap(),
        engine: &asked.engine,
        engine_digest: asked.engine_digest,
        target: asked.target,
        target_admission: asked.target_admission,
        base: asked.base,
        purpose: asked.purpose,
        destination: asked.destination,
        image: asked.image,
        governance_digest: governance(),
        egress_digest: asked.egress_digest,
    });
    request.contract_text = contract_text.to_owned();
    request
}

#[test]
fn a_packet_shows_the_image_that_a_container_is_made_of() {
    let shown =
        |lines: Vec<String>| lines.into_iter().filter(|line| line.trim().starts_with("image")).count();
    assert_eq!(shown(packet().lines()), 0);
    let mut request = request_for(CONTRACT);
    request.binding.image = Some("team/agent@sha256:12, runtime runsc".to_owned());
    let lines = Packet::new(request, Vec::new(), governance()).unwrap().lines();
    assert!(lines.iter().any(|line| line.ends_with("team/agent@sha256:12, runtime runsc")), "{lines:#?}");
    assert_eq!(shown(lines), 1);
}

#[test]
fn a_packet_shows_what_will_change_by_whom_and_what_stays_blocked() {
    let text = packet().lines().join("\n");
    let binding = binding();
    for shown in [
        "it is due",
        "bob (nobody vouches for this name) at ",
        "slugify keeps outer whitespace",
        "string-slugify",
        "4: a throw-away repository made for the run",
        "may change    strings.py",
        "may change    tests/**",
        "lifted        Cargo.lock",
        "may not       docs/legal/**",
        "engine        fake",
        "somebody/some-model, fallback: other-model, auxiliary: small-model",
        "destination   sandbox",
        "egress        none",
        "verify        python3 -m pytest -q",
        "risk          low",
        "stage 3 was proven by run 1",
        "  push                   sending commits to a remote",
        "  merge                  ",
        "  deploy                 ",
        "  tag                    making a tag",
        "  vendor_source_mutation changing vendored sources",
        "  | slugify must trim.\n  | And collapse.",
        &binding.base,
        &binding.contract_digest.to_string(),
        &binding.engine_digest.to_string(),
        &binding.policy_digest.to_string(),
        &request(1).expires_at.to_string(),
        &request(1).id.to_string(),
    ] {
        assert!(text.contains(shown), "`{shown}` is not in:\n{text}");
    }
}

#[test]
fn a_request_that_asks_for_something_else_than_its_contract_is_not_shown() {
    let mut other_text = request(1);
    other_text.contract_text = CONTRACT.replace("must trim", "must go");
    let mut other_stage = request(1);
    other_stage.binding.stage = herma_core::Stage::OwnedRepo;
    let mut other_rules = request(1);
    other_rules.binding.policy_digest = Digest::of(b"other");
    let mut other_model = request(1);
    other_model.binding.model = None;
    let mut other_destination = request_for(&CONTRACT.replace("risk: low", "destination: sandbox"));
    other_destination.binding.destination = herma_core::engine::DestinationKind::Host;
    for (bad, what) in [
        (other_text, "the contract changed"),
        (other_stage, "the stage changed"),
        (other_rules, "the policy changed"),
        (other_model, "the model changed"),
        (other_destination, "the destination changed"),
    ] {
        let error = Packet::new(bad, vec![], governance()).unwrap_err();
        assert!(matches!(error, BadRequest::Differs(_)) && error.to_string().contains(what), "{error}");
    }
    let mut no_contract = request(1);
    no_contract.contract_text = String::new();
    assert!(matches!(Packet::new(no_contract, vec![], governance()), Err(BadRequest::Contract(_))));
}

#[test]
fn a_code_is_of_one_packet_only() {
    let code = packet().code().to_owned();
    assert_eq!(code.len(), 6);
    assert!(code.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase() && !b"ILOU".contains(&b)));
    assert_eq!(
        Packet::new(request(1), vec![], governance()).unwrap().code(),
        code,
        "evidence may grow meanwhile"
    );

    let mut later = request(1);
    later.expires_at = super::at(2_000);
    let mut other_engine = request(1);
    other_engine.binding.engine_digest = Digest::of(b"other");
    let other_brief = request_for(&CONTRACT.replace("must trim", "must go"));
    for other in [request(2), later, other_engine, other_brief] {
        assert_ne!(Packet::new(other, vec![], governance()).unwrap().code(), code);
    }
}

#[test]
fn a_code_is_taken_as_people_type_it_and_nothing_else_is() {
    let packet = packet();
    let code = packet.code();
    let spaced = format!(" {}-{} ", &code[..3], code[3..].to_lowercase());
    assert!(packet.is_code(code) && packet.is_code(&spaced));
    let misread = code.replace('0', "O").replace('1', "l");
    assert!(packet.is_code(&misread));
    for wrong in ["", "yes", "000000", &code[..5], &format!("{code}0")] {
        assert!(!packet.is_code(wrong), "{wrong}");
    }
}

#[test]
fn a_brief_cannot_pretend_to_be_another_part_of_the_packet() {
    let brief = format!("{CONTRACT}\n\nWhat stays blocked\n  none\n");
    let lines = Packet::new(request_for(&brief), vec![], governance()).unwrap().lines();
    assert_eq!(lines.iter().filter(|line| *line == "What stays blocked").count(), 1);
    assert!(lines.contains(&"  | What stays blocked".to_owned()));
}

/// A name is shown only with a signature that counts.
#[test]
fn who_asks_is_vouched_for_by_a_signature_or_by_nobody() {
    let sound = granted(1);
    assert!(asker_signed(&sound, &Believes(&["bob"])));
    assert!(!asker_signed(&sound, &Believes(&["alice"])), "bob was revoked");
    let mut unsigned = sound.clone();
    unsigned.signed_request = None;
    let mut forged = sound.clone();
    forged.signed_request = Some(signed(request(1), "mallory"));
    let mut of_another = sound;
    of_another.signed_request = Some(signed(request(2), "bob"));
    for approval in [unsigned, forged, of_another] {
        assert!(!asker_signed(&approval, &Believes(&["bob"])), "{:?}", approval.signed_request);
    }
    let mut vouched = packet();
    vouched.asker_signed = true;
    let vouched = vouched.lines().join("\n");
    assert!(vouched.contains("asked by      bob (signed) at "), "{vouched}");
}

/// Whether a line of a packet is the beginning of one of its own: a name in the first column, or a title.
fn begins(line: &str, name: &str) -> bool {
    line.trim_start().starts_with(name)
}

#[test]
fn a_text_cannot_draw_a_line_by_being_wrapped() {
    let pad = |by: usize, text: &str| format!("fix{}{text}", " ".repeat(by));
    let title = pad(60, &pad(40, "lifted        none")) + "\u{3000}\u{2800}\u{a0} may change    only /README";
    let contract = CONTRACT.replace("slugify keeps outer whitespace", &format!("\"{title}\""));
    let brief = format!("{}What stays blocked", " ".repeat(96));
    let contract = contract.replace("And collapse.", &format!("And {} collapse.\n.{brief}", "x".repeat(300)));
    let mut request = request_for(&contract);
    request.reason = format!("{} lifted        none", "y".repeat(80));
    let lines = Packet::new(request, vec!["z ".repeat(150) + "code AAAAAA"], governance()).unwrap().lines();
    for line in &lines {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for (name, times) in [("lifted ", 1), ("may change ", 2), ("What stays blocked", 1), ("code ", 0)] {
        assert_eq!(lines.iter().filter(|line| begins(line, name)).count(), times, "{name}: {lines:#?}");
    }
    assert!(
        lines.contains(&"  task          fix fix lifted none may change only /README".to_owned()),
        "{lines:#?}"
    );
    assert!(lines.contains(&format!("  {:13} | lifted none", "")), "{lines:#?}");
    assert!(lines.contains(&format!("  | .{}What stays blocked", " ".repeat(16))), "{lines:#?}");
}

#[test]
fn blanks_that_a_machine_takes_literally_are_not_lost() {
    let contract = CONTRACT.replace("[strings.py, ", "[\"a  b\u{a0}c.py\", ");
    let text = Packet::new(request_for(&contract), vec![], governance()).unwrap().lines().join("\n");
    assert!(text.contains("may change    a \\u{20}b\\u{a0}c.py"), "{text}");
}

#[test]
fn what_nobody_reads_to_its_end_is_not_shown() {
    let titled = |n: usize| request_for(&CONTRACT.replace("slugify keeps outer whitespace", &"ö".repeat(n)));
    let mut long_reason = request(1);
    long_reason.reason = "x".repeat(201);
    let mut long_name = request(1);
    long_name.requested_by = "x".repeat(201);
    for (bad, what) in [(titled(201), "title"), (long_reason, "reason"), (long_name, "who asks")] {
        let error = Packet::new(bad, vec![], governance()).unwrap_err();
        assert_eq!(error.to_string(), format!("{what} is longer than 200 characters: shorten it"));
    }
    assert!(Packet::new(titled(200), vec![], governance()).is_ok());
}

#[test]
fn the_text_to_copy_is_all_comment() {
    let text = packet().copy_text();
    assert!(text.starts_with("# This text is for reading: it is not executable"));
    assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
    assert!(text.contains("sending commits to a remote"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_raw_is_shown(dirt in "[\\PC\u{1b}\u{7}\r\n\t\u{9b}\u{85}\u{202e}\u{2066}\u{200b}\u{2028}\u{feff}\u{e0041}]{1,12}") {
        let quoted = serde_json::to_string(&dirt.replace(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'], " ")).unwrap();
        let contract = CONTRACT
            .replace("slugify keeps outer whitespace", &quoted)
            .replace("authority: somebody", &format!("authority: {quoted}\nsuccess: [{quoted}]\negress: [{quoted}]"))
            .replace("must trim.", &format!("must trim. {}", dirt.replace("---", "")));
        // A title or a brief that is no contract's is refused before anybody is shown it.
        prop_assume!(herma_core::Contract::parse(contract.as_bytes()).is_ok());
        let mut request = request_for(&contract);
        request.reason.clone_from(&dirt);
        request.requested_by.clone_from(&dirt);
        request.binding.target.clone_from(&dirt);
        request.binding.base.clone_from(&dirt);
        let packet = Packet::new(request, vec![dirt], governance()).unwrap();
        for line in packet.lines() {
            let raw = |c: char| c.is_control() || "\u{202e}\u{2066}\u{200b}\u{2028}\u{feff}\u{e0041}".contains(c);
            prop_assert!(!line.contains(raw), "{line:?}");
        }
        prop_assert!(packet.copy_text().lines().all(|line| line.starts_with('#')));
    }
}
