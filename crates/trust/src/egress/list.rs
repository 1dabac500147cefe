//! The installation's own list of hosts that every run may reach, one rule a line in `egress/allowlist`.
//!
//! Where `egress_signed_by` in settings.yaml names an approver, that file is a draft, and only what this approver has
//! signed counts. A signature that does not hold keeps the last list that held, and blocks new runs.

use herma_core::approver::ApproverName;
use herma_core::trust::TrustEntry;
use herma_core::visible::visible_line;
use herma_core::{Digest, Timestamp};
use herma_egress::rules::{Allowlist, Rule};
use herma_egress::signed::{NamedKey, SignedList, Verified, verify};
use herma_evidence::signed;

use super::error::EgressError;
use super::files::EgressFiles;
use crate::approvers::{Approver, Approvers};

/// The list as people write it.
const LIST: &str = "allowlist";
/// The list as it was signed.
const SIGNED: &str = "allowlist.signed.json";
/// The last signed list that held.
const LAST_GOOD: &str = "last-good.json";
/// The most entries.
const MOST: usize = 1_000;

const NAME: &str = "egress/allowlist";

/// The hosts that every run of the installation may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallationList {
    /// The entries that count.
    pub hosts: Vec<String>,
    /// The approver who signed them, where a signature is required.
    pub signed: Option<SignedBy>,
    /// Entries of the draft that do not count, because they are not signed.
    pub unsigned: Vec<String>,
    /// Why new runs are blocked, where they are.
    pub problem: Option<String>,
    pub(super) allowlist: Allowlist,
}

/// The approver who must sign the list, and the signed list's serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBy {
    /// The approver.
    pub name: ApproverName,
    /// Which; none where nothing was ever signed.
    pub serial: Option<u64>,
}

impl EgressFiles {
    /// The list that counts. `required` names whose signature it must carry.
    pub fn list(
        &self,
        required: Option<&ApproverName>,
        approvers: &Approvers,
    ) -> Result<InstallationList, EgressError> {
        let (draft, allowlist) = self.draft()?;
        let Some(name) = required else {
            return Ok(InstallationList { hosts: draft, allowlist, ..InstallationList::default() });
        };
        let (verified, problem) = self.verified(name, approvers, !draft.is_empty())?;
        let serial = verified.as_ref().map(|list| list.serial);
        let (hosts, allowlist) = verified.map(|list| (list.hosts, list.allowlist)).unwrap_or_default();
        let unsigned = draft.into_iter().filter(|host| !hosts.contains(host)).collect();
        let signed = Some(SignedBy { name: name.clone(), serial });
        Ok(InstallationList { hosts, signed, unsigned, problem, allowlist })
    }

    /// The last signed list that held, and why new runs are blocked, where they are.
    fn verified(
        &self,
        name: &ApproverName,
        approvers: &Approvers,
        has_draft: bool,
    ) -> Result<(Option<Verified>, Option<String>), EgressError> {
        let key = match named_key(name, approvers) {
            Ok(key) => key,
            Err(why) => return Ok((None, Some(why))),
        };
        let kept = self.read(LAST_GOOD)?;
        let named = approvers.trust_log().read()?.egress_list();
        // Both files can be restored together, so the chain decides which list counts.
        let counts = |bytes: &[u8]| named.is_none_or(|(_, digest)| Digest::of(bytes) == digest);
        let last = kept.as_deref().filter(|bytes| counts(bytes));
        let last = last.and_then(|bytes| verify(bytes, &key, None).ok());
        let Some(bytes) = self.read(SIGNED)? else {
            let missing = || format!("{NAME} is not signed; have `{name}` sign it with `herma egress sign`");
            return Ok((last.clone(), (has_draft || last.is_some()).then(missing)));
        };
        match verify(&bytes, &key, last.as_ref()) {
            Ok(verified) if !counts(&bytes) => {
                let wanted = named.map_or(0, |(serial, _)| serial);
                let why = format!(
                    "{NAME}: the signed list has the serial {}, and the trust chain names another one, with {wanted}; \
                     restore that one, or have `{name}` sign again with `herma egress sign`",
                    verified.serial
                );
                Ok((last, Some(why)))
            }
            Ok(verified) => {
                if kept.as_deref() != Some(&bytes) {
                    self.write(LAST_GOOD, &bytes)?;
                }
                Ok((Some(verified), None))
            }
            Err(bad) => Ok((last, Some(bad.to_string()))),
        }
    }

    /// The list as people edit it.
    pub fn draft(&self) -> Result<(Vec<String>, Allowlist), EgressError> {
        let bytes = self.read(LIST)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|e| EgressError::Io {
            file: NAME.to_owned(),
            doing: "read",
            source: std::io::Error::other(e),
        })?;
        let mut hosts = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let entry = line.trim();
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            let rule = entry.parse::<Rule>();
            let rule = rule.map_err(|bad| EgressError::Line { file: NAME, line: at + 1, bad })?;
            let written = rule.to_string();
            if !hosts.contains(&written) {
                hosts.push(written);
            }
        }
        if hosts.len() > MOST {
            return Err(EgressError::TooMany(MOST));
        }
        let allowlist =
            Allowlist::parse(&hosts).map_err(|bad| EgressError::Line { file: NAME, line: 0, bad })?;
        Ok((hosts, allowlist))
    }

    /// Adds rules to the draft, and returns those that were new.
    pub fn add(&self, rules: &[Rule], why: &str) -> Result<Vec<String>, EgressError> {
        let _lock = self.lock()?;
        let (there, _) = self.draft()?;
        let mut new: Vec<String> = Vec::new();
        for rule in rules.iter().map(ToString::to_string) {
            if !there.contains(&rule) && !new.contains(&rule) {
                new.push(rule);
            }
        }
        if new.is_empty() {
            return Ok(new);
        }
        if there.len() + new.len() > MOST {
            return Err(EgressError::TooMany(MOST));
        }
        let mut text = String::from_utf8_lossy(&self.read(LIST)?.unwrap_or_default()).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(["# ", &visible_line(why), "\n", &new.join("\n"), "\n"]);
        self.write(LIST, text.as_bytes())?;
        Ok(new)
    }

    /// Signs the draft, so that it counts.
    pub fn sign(
        &self,
        required: Option<&ApproverName>,
        approvers: &Approvers,
        approver: &Approver,
        now: Timestamp,
    ) -> Result<InstallationList, EgressError> {
        let wanted = required.ok_or(EgressError::NotRequired)?;
        if wanted != approver.name() {
            let (wanted, by) = (wanted.to_string(), approver.name().to_string());
            return Err(EgressError::OtherSigner { wanted, by });
        }
        let lock = self.lock()?;
        let (hosts, _) = self.draft()?;
        let (last, _) = self.verified(wanted, approvers, false)?;
        let mut chain = approvers.trust_log().lock()?;
        let named = chain.chain().egress_list().map_or(0, |(serial, _)| serial);
        let serial = last.map_or(0, |last| last.serial).max(named) + 1;
        let signed = serde_json::to_vec_pretty(&signed::sign(SignedList { serial, hosts }, approver)?)?;
        // The chain first: a list that only the chain knows blocks runs until it is signed again.
        chain.append(TrustEntry::EgressListSigned { serial, record: Digest::of(&signed) }, approver, now)?;
        drop(chain);
        self.write(SIGNED, &signed)?;
        drop(lock);
        self.list(required, approvers)
    }
}

/// The key of an approver whose signatures count today.
fn named_key(name: &ApproverName, approvers: &Approvers) -> Result<NamedKey, String> {
    let known = approvers.find(name).map_err(|e| format!("settings.yaml: egress_signed_by: {e}"))?;
    known.trusted().map_err(|e| e.to_string())?;
    let key = known.key().map_err(|e| e.to_string())?;
    Ok(NamedKey { name: name.to_string(), key })
}
