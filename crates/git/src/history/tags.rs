//! The tags that point into a history.

use std::collections::HashSet;

use crate::error::GitError;
use crate::git_dir::is_id;
use crate::source::SourceRepo;

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Its full name. git lets a name have no space and no control character.
    pub(super) name: String,
    /// The commit, or the object of an annotated tag.
    pub(super) id: String,
}

/// The tags of the base's history; where `commits` are given, only those that point to one of them.
pub(super) fn pointing_into(
    source: &SourceRepo,
    commits: Option<&HashSet<String>>,
) -> Result<Vec<Tag>, GitError> {
    // Where the commits are known, git need not walk a history that may be incomplete.
    let merged = commits.is_none().then(|| format!("--merged={}", source.base_commit));
    let args = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"];
    let listed = source.git.call(&source.common_dir, args).args(merged).checked()?.stdout;
    let lines = listed.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    // A name that is not UTF-8 cannot be asked for by most tools, and none of them prints it.
    let tags = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let tags = tags.filter_map(|line| line.split_once(' ')).filter(|(id, _)| is_id(id));
    let tags: Vec<Tag> = tags.map(|(id, name)| Tag { name: name.to_owned(), id: id.to_owned() }).collect();
    let Some(commits) = commits else { return Ok(tags) };
    if tags.is_empty() {
        return Ok(tags);
    }
    let questions: String = tags.iter().flat_map(|tag| [&tag.id, "^{commit}\n"]).collect();
    let call = source.git.call(&source.common_dir, ["cat-file", "--batch-check=%(objectname)"]);
    let answers = call.stdin(questions.into_bytes()).checked()?.stdout;
    let answers = String::from_utf8_lossy(&answers).into_owned();
    if answers.lines().count() != tags.len() {
        return Err(GitError::unexpected("cat-file", answers.as_bytes()));
    }
    let points_in = |(tag, commit): (Tag, &str)| commits.contains(commit).then_some(tag);
    Ok(tags.into_iter().zip(answers.lines()).filter_map(points_in).collect())
}
