//! The packet that a person sees before granting an approval, and the short code for exactly that packet.

use herma_core::approval::{Approval, ApprovalRequest, Change};
use herma_core::contract::Terms;
use herma_core::{Contract, Digest};
use schemars::JsonSchema;
use serde::Serialize;

use super::bind::{BindingInput, bind};
use super::page;
use super::signatures::SignatureCheck;
use crate::approvers::Approvers;

/// Crockford's digits: none that a reader takes for another.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// How many characters a title, a reason and a name may have: a longer text is not read to its end.
const LONGEST: usize = 200;

/// The text that a person sees before granting an approval. There is one only for a request whose contract and binding agree:
/// no person is shown one thing and signs another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packet {
    pub(super) request: ApprovalRequest,
    pub(super) terms: Terms,
    pub(super) brief: String,
    pub(super) evidence: Vec<String>,
    pub(super) reached_by_all: Vec<String>,
    pub(super) asker_signed: bool,
    code: String,
}

/// A request that cannot be shown, and so must not be granted.
#[derive(Debug, thiserror::Error)]
pub enum BadRequest {
    /// Its contract is none.
    #[error("the contract in the request cannot be read: {0}")]
    Contract(String),
    /// It asks for something else than its contract, or was made under other rules.
    #[error("the request is not for what its contract says now; ask anew: {}", in_words(.0))]
    Differs(Vec<Change>),
    /// A text of it is longer than anybody reads.
    #[error("{0} is longer than {LONGEST} characters: shorten it")]
    TooLong(&'static str),
    /// It cannot be written as JSON.
    #[error("the request cannot be written down: {0}")]
    Json(#[from] serde_json::Error),
}

/// The input of the code.
#[derive(Serialize)]
struct Coded<'a> {
    kind: &'static str,
    request: &'a ApprovalRequest,
    brief: &'a str,
}

impl Packet {
    /// The packet of an approval. `evidence` is what is known of the engine so far, one sentence each. Only a signature
    /// that counts confirms the name of the requester.
    /// `reached_by_all` is what the installation lets every run reach, one entry each, and `governance` the digest of the
    /// policies that hold now.
    pub fn of(
        approval: &Approval,
        approvers: &Approvers,
        evidence: Vec<String>,
        reached_by_all: Vec<String>,
        governance: Digest,
    ) -> Result<Self, BadRequest> {
        let packet = Self::new(approval.request.clone(), evidence, governance)?;
        Ok(Self { asker_signed: asker_signed(approval, approvers), reached_by_all, ..packet })
    }

    /// The packet of an unsigned request.
    pub(super) fn new(
        request: ApprovalRequest,
        evidence: Vec<String>,
        governance: Digest,
    ) -> Result<Self, BadRequest> {
        let contract = Contract::parse(request.contract_text.as_bytes())
            .map_err(|bad| BadRequest::Contract(bad.problem))?;
        let texts = [
            (&contract.terms.title, "title"),
            (&request.reason, "reason"),
            (&request.requested_by, "who asks"),
        ];
        for (text, what) in texts {
            not_too_long(text, what)?;
        }
        let asked = &request.binding;
        // The binding that follows from the contract and the rules must be the requested one.
        let follows = bind(&BindingInput {
            contract: &contract,
            contract_digest: contract.digest()?,
            engine: &asked.engine,
            engine_digest: asked.engine_digest,
            target: asked.target.clone(),
            target_admission: asked.target_admission,
            base: asked.base.clone(),
            purpose: asked.purpose,
            destination: contract.terms.destination.unwrap_or(asked.destination),
            image: asked.image.clone(),
            governance_digest: governance,
            // The contract's hosts are part of its digest. The hosts that the installation allows change by themselves, as grants end;
            // a run under other rules than these is void.
            egress_digest: asked.egress_digest,
        });
        let changes = asked.changes(&follows);
        if !changes.is_empty() {
            return Err(BadRequest::Differs(changes));
        }
        let Contract { terms, brief } = contract;
        let coded = Coded { kind: "herma.approval-code/v1", request: &request, brief: &brief };
        let code = six_digits(&Digest::of(&serde_json_canonicalizer::to_vec(&coded)?));
        Ok(Self { request, terms, brief, evidence, reached_by_all: Vec::new(), asker_signed: false, code })
    }

    /// The packet in lines, in which nothing can hide: every control, bidirectional and invisible character is
    /// spelled out, no text of others begins a line of its own, and none is so long that a terminal would break it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        page::lines(self)
    }

    /// Six characters derived from exactly this request and brief: typing them confirms that this packet was read.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether the typed text is the code. Case, hyphens and blanks do not matter, nor `O` for `0` and the like.
    #[must_use]
    pub fn is_code(&self, typed: &str) -> bool {
        let meant = |c: char| match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        };
        let typed: String = typed.chars().filter(|c| !matches!(c, '-' | ' ')).map(meant).collect();
        typed == self.code
    }

    /// The packet as a text to copy into a message. Every line is a comment, so that it does nothing where it is
    /// pasted by mistake.
    #[must_use]
    pub fn copy_text(&self) -> String {
        let head = "This text is for reading: it is not executable, and it grants nothing.".to_owned();
        let lines = std::iter::once(head).chain(self.lines());
        lines.map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect()
    }
}

/// Whether a text is short enough for a packet; `what` is its name in the message.
pub fn not_too_long(text: &str, what: &'static str) -> Result<(), BadRequest> {
    if text.chars().count() <= LONGEST { Ok(()) } else { Err(BadRequest::TooLong(what)) }
}

/// Whether the approver that the request names as its requester has signed it.
pub(super) fn asker_signed(approval: &Approval, signatures: &dyn SignatureCheck) -> bool {
    let signed = approval.signed_request.as_ref().filter(|signed| signed.record == approval.request);
    signed.is_some_and(|signed| signatures.request(signed).is_ok())
}

/// The first thirty bits of a digest, five for each digit.
fn six_digits(digest: &Digest) -> String {
    let bits = digest.as_bytes().iter().take(4).fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) >> 2;
    let digit = |at: u32| char::from(DIGITS[(bits >> (5 * at)) as usize % DIGITS.len()]);
    (0..6).rev().map(digit).collect()
}

fn in_words(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
