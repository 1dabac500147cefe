//! The target's refs and their values, and whether a landing added exactly one.

use serde::{Deserialize, Serialize};

use super::{BaseRef, LandState, Landing};
use crate::error::GitError;
use crate::git_dir::is_id;
use crate::source::SourceRepo;

/// Every ref of a repository and its HEAD at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RefList(Vec<String>);

/// One ref.
struct Ref {
    name: String,
    id: String,
    /// The commit that an annotated tag is of.
    peeled: Option<String>,
    /// The target of a symbolic ref.
    symbolic: Option<String>,
}

impl SourceRepo {
    /// Reads every ref and HEAD.
    pub fn ref_list(&self) -> Result<RefList, GitError> {
        let shown = |r: Ref| match r.symbolic {
            Some(other) => format!("{} -> {other}", r.name),
            None => format!("{} {}", r.name, r.id),
        };
        let refs = self.refs(&[]).map_err(|e| self.unplaced(e))?;
        let mut list: Vec<String> = refs.into_iter().map(shown).collect();
        list.push(format!("HEAD {}", self.head_branch()?.map_or_else(|| self.head_commit(), Ok)?));
        list.sort_unstable();
        Ok(RefList(list))
    }

    /// Whether `after` is `before` plus the ref of `landing`.
    #[must_use]
    pub fn only_landed(before: &RefList, after: &RefList, landing: &Landing) -> bool {
        let mut expected = before.0.clone();
        expected.push(format!("{} {}", landing.reference, landing.commit));
        expected.sort_unstable();
        expected == after.0
    }

    /// The state of the ref of `landing`.
    pub fn landed(&self, landing: &Landing) -> Result<LandState, GitError> {
        let found = self.refs(&[&landing.reference]).map_err(|e| self.unplaced(e))?;
        Ok(match found.into_iter().find(|r| r.name == landing.reference) {
            None => LandState::Absent,
            Some(r) if r.id == landing.commit && r.symbolic.is_none() => LandState::Ours,
            Some(r) => LandState::Theirs(r.id),
        })
    }

    /// A ref that git cannot keep beside the one of `landing`: the same name, a prefix of it, or one below it.
    pub(super) fn in_the_way(&self, landing: &Landing) -> Result<Option<String>, GitError> {
        let below = format!("{}/", landing.reference);
        let above = landing.directories();
        let names: Vec<&str> = above.iter().copied().chain([landing.reference.as_str()]).collect();
        let blocks = |name: &str| names.contains(&name) || name.starts_with(&below);
        Ok(self.refs(&names)?.into_iter().map(|r| r.name).find(|name| blocks(name)))
    }

    /// Whether the ref of the base has not moved.
    pub(super) fn still_stands(&self, base: &BaseRef) -> Result<bool, GitError> {
        if base.name == "HEAD" {
            return Ok(self.head_commit()? == base.id);
        }
        Ok(self.refs(&[&base.name])?.iter().any(|r| r.name == base.name && r.id == base.id))
    }

    /// The ref of the base, resolved in git's own order. A base that is no ref cannot move.
    pub(super) fn base_ref(&self) -> Result<Option<BaseRef>, GitError> {
        if self.base == "HEAD" {
            let name = self.head_branch()?.unwrap_or_else(|| "HEAD".to_owned());
            return Ok(Some(BaseRef { name, id: self.base_commit.clone() }));
        }
        let base = &self.base;
        let names = [
            base.clone(),
            format!("refs/{base}"),
            format!("refs/tags/{base}"),
            format!("refs/heads/{base}"),
            format!("refs/remotes/{base}"),
            format!("refs/remotes/{base}/HEAD"),
        ];
        let refs = self.refs(&names.each_ref().map(String::as_str))?;
        let Some(found) = names.iter().find_map(|name| refs.iter().find(|r| r.name == *name)) else {
            return Ok(None);
        };
        let name = found.symbolic.as_ref().unwrap_or(&found.name).clone();
        // A ref that has already moved is kept with the commit that it must have, so that the landing is rejected.
        let tags_base = found.peeled.as_ref() == Some(&self.base_commit);
        Ok(Some(BaseRef { name, id: if tags_base { found.id.clone() } else { self.base_commit.clone() } }))
    }

    /// Whether some work tree has the branch checked out.
    pub(super) fn is_checked_out(&self, reference: &str) -> Result<bool, GitError> {
        let output = self.reading(["for-each-ref", "--format=%(worktreepath)", reference]).checked()?;
        Ok(output.stdout.iter().any(|b| *b != b'\n'))
    }

    /// The refs that equal or are below one of `names`; all if there are none.
    fn refs(&self, names: &[&str]) -> Result<Vec<Ref>, GitError> {
        let format = "--format=%(refname)%00%(objectname)%00%(*objectname)%00%(symref)";
        let output = self.reading(["for-each-ref", format]).args(names).checked()?;
        let lines = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let text = String::from_utf8_lossy(line);
                let parts: Vec<&str> = text.split('\0').collect();
                let [name, id, peeled, symbolic] = parts[..] else {
                    return Err(GitError::unexpected("for-each-ref", line));
                };
                let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                Ok(Ref { name: name.into(), id: id.into(), peeled: some(peeled), symbolic: some(symbolic) })
            })
            .collect()
    }

    /// The branch that HEAD is on, born or not.
    fn head_branch(&self) -> Result<Option<String>, GitError> {
        let output = self.reading(["symbolic-ref", "--quiet", "HEAD"]).output()?;
        let name = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok((output.status.success() && !name.is_empty()).then_some(name))
    }

    /// The commit that HEAD resolves to.
    fn head_commit(&self) -> Result<String, GitError> {
        let output = self.reading(["rev-parse", "--verify", "--quiet", "HEAD"]).output()?;
        let id = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok(if is_id(&id) { id } else { "none".to_owned() })
    }
}
