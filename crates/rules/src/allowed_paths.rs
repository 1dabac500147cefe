//! The allowed-path check: which changes of a result break which rule.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use herma_core::RepoPath;
use herma_core::contract::{Pattern, Terms};
use herma_core::report::{ChangedFile, Mode, PathRule, PathViolation};

use crate::aliases::{self, Alias};
use crate::bare_repositories::{self, BareRepository};
use crate::forbidden_paths::{self, Lift};
use crate::glob::{BadPattern, Globs, LetterCase, PathKind, prefixes};
use crate::names::{fold_letters, fold_path, fold_pattern, ntfs_short_name_of};
use crate::pattern_table::PatternTable;
use crate::tree_facts::TreeFacts;
use crate::{case_twins, path_length, symlinks};

/// A changed file that is larger cannot be shown in a patch.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// How much all directories of all changed paths may have to be compared: a path is compared with the rules once for each of
/// its directories, so that deep ones cost the square of their length. Beyond the free part only paths count that are nested
/// deeper than those of any usual repository.
const FREE_DEPTH_BYTES: u64 = 64 << 20;
const USUAL_DEPTH: u64 = 16;
/// The number of wildcards in the patterns of a contract: each costs memory and time for every path.
const MAX_WILDCARDS: usize = 1_000;

/// The path rules of one contract.
#[derive(Clone, Debug)]
pub struct PathRules {
    allowed: Globs,
    forbidden: Globs,
    lifted: LiftedRules,
}

/// The built-in rules that `lift_paths` lifts.
#[derive(Clone, Debug)]
struct LiftedRules {
    /// Patterns that start at the root: they also lift a part of a forbidden directory.
    anchored: Globs,
    /// Patterns that match at any depth: `Cargo.lock` lifts that name, and not the `vendor/` around it.
    floating: Globs,
}

/// The built-in lists are the same for every contract.
static NEVER_LIFTED: LazyLock<PatternTable> =
    LazyLock::new(|| PatternTable::new(forbidden_paths::patterns(Lift::Never)));
static BUILT_IN: LazyLock<PatternTable> =
    LazyLock::new(|| PatternTable::new(forbidden_paths::patterns(Lift::ByContract)));

impl PathRules {
    /// The rules that a contract's terms lead to.
    pub fn compile(terms: &Terms) -> Result<Self, BadPattern> {
        bound_wildcards(terms)?;
        let forbidden: Vec<String> =
            terms.forbidden_paths.iter().map(|pattern| fold_pattern(pattern.as_str())).collect();
        Ok(Self {
            allowed: Globs::compile(
                terms.allowed_paths.as_slice().iter().map(Pattern::as_str),
                LetterCase::Exact,
            )?,
            forbidden: Globs::compile(forbidden.iter().map(String::as_str), LetterCase::Any)?,
            lifted: LiftedRules::compile(&terms.lift_paths)?,
        })
    }

    /// Every path that broke a rule, in order of path and rule.
    #[must_use]
    pub fn judge(&self, facts: &TreeFacts) -> Vec<PathViolation> {
        let mut violations: Vec<PathViolation> = Vec::new();
        violations.extend(self.judge_names(&facts.changes));
        let submodules: BTreeMap<Vec<u8>, &RepoPath> =
            facts.submodules.iter().map(|path| (fold_path(path.as_bytes()), path)).collect();
        for change in &facts.changes {
            violations.extend(judge_submodule(change, &submodules));
            violations.extend(judge_content(change, facts));
            violations.extend(judge_lfs_file(change, facts));
        }
        for path in &facts.ignored {
            violations.extend(self.forbids(path, PathKind::Leaf));
        }
        violations.extend(self.judge_aliases(facts));
        for path in &facts.git_control_files {
            let why = "it decides how git behaves in the workspace, and is not as herma made it";
            violations.push(broke(path, PathRule::Forbidden, why));
        }
        for path in &facts.oversized {
            violations.push(broke(path, PathRule::TooLarge, "it is too large to be hashed"));
        }
        for path in &facts.unreadable {
            violations.push(broke(
                path,
                PathRule::SpecialFile,
                "it belongs to another user, and herma may not read it",
            ));
        }
        for path in &facts.special_files {
            violations.push(broke(path, PathRule::SpecialFile, "it is a FIFO, a socket or a device"));
        }
        for path in &facts.nested_repositories {
            violations.push(broke(
                path,
                PathRule::NestedRepository,
                "it makes a repository inside the repository",
            ));
        }
        violations.extend(judge_unsupported(facts));
        violations.extend(judge_repositories(&facts.changes, &facts.paths, &facts.submodules));
        let added: Vec<&RepoPath> = facts.changes.iter().filter(|c| is_added(c)).map(|c| &c.path).collect();
        for (path, twin) in case_twins::find(&added, &facts.paths) {
            violations.push(broke(path, PathRule::CaseTwin, format!("`{twin}` differs only in spelling")));
        }
        violations.sort();
        violations.dedup();
        violations
    }

    /// The rules that need nothing but the changes themselves.
    #[must_use]
    pub fn judge_names(&self, changes: &[ChangedFile]) -> Vec<PathViolation> {
        self.judge_names_while(changes, &|| true).unwrap_or_default()
    }

    /// The same as long as `goes_on` says so, or `None`. Patterns that match in many ways take long for each path.
    #[must_use]
    pub fn judge_names_while(
        &self,
        changes: &[ChangedFile],
        goes_on: &dyn Fn() -> bool,
    ) -> Option<Vec<PathViolation>> {
        let deepest = deepest_judged(changes);
        let judge = |change: &ChangedFile| {
            if depth(&change.path) > deepest {
                let why = format!("it is nested in more than {deepest} directories, too many to be judged");
                return vec![broke(&change.path, PathRule::NotAllowed, why)];
            }
            self.judge_name(change)
        };
        let mut violations = Vec::new();
        for change in changes {
            if !goes_on() {
                return None;
            }
            violations.extend(judge(change));
        }
        Some(violations)
    }

    /// The rules that need nothing but the change itself: allowed, forbidden, printable.
    #[must_use]
    pub fn judge_name(&self, change: &ChangedFile) -> Vec<PathViolation> {
        let path = &change.path;
        let kind = if is_submodule(change) { PathKind::Directory } else { PathKind::Leaf };
        let mut violations = Vec::new();
        if self.allowed.covers(path.as_bytes(), kind).is_none() {
            violations.push(broke(path, PathRule::NotAllowed, "no pattern of allowed_paths matches it"));
        }
        // A link can replace a directory.
        violations.extend(self.forbids(path, if is_link(change) { PathKind::Directory } else { kind }));
        if is_added(change) {
            violations.extend(ntfs_short_name_of(path.name()).map(|dot_file| {
                let why =
                    format!("NTFS can open `{dot_file}` by this name, which is forbidden for a new file");
                broke(path, PathRule::Forbidden, why)
            }));
            violations.extend(path.name_problem().map(|why| broke(path, PathRule::UnprintableName, why)));
            violations
                .extend(path_length::problem(path).map(|why| broke(path, PathRule::UnsupportedPath, why)));
        }
        violations
    }

    /// The rules that need nothing but the changes: those for each name, and repositories that the changes make by
    /// themselves. One of which a part was there before is seen only in the whole tree.
    #[must_use]
    pub fn judge_changes(&self, changes: &[ChangedFile]) -> Vec<PathViolation> {
        self.judge_changes_while(changes, &|| true).unwrap_or_default()
    }

    /// The same as long as `goes_on` says so, or `None`.
    #[must_use]
    pub fn judge_changes_while(
        &self,
        changes: &[ChangedFile],
        goes_on: &dyn Fn() -> bool,
    ) -> Option<Vec<PathViolation>> {
        let mut violations = self.judge_names_while(changes, goes_on)?;
        violations.extend(bare_repositories::find_in_changes(changes).iter().map(makes_repository));
        Some(violations)
    }

    /// The forbidden names that a link gives to files, each change once; their own names are judged already.
    fn judge_aliases(&self, facts: &TreeFacts) -> Vec<PathViolation> {
        let aliases = match aliases::find(facts) {
            Ok(aliases) => aliases,
            Err(link) => {
                return vec![broke(link, PathRule::ForbiddenAlias, "links give too many names to be judged")];
            }
        };
        let mut judged = BTreeMap::new();
        for Alias { changed, link, name } in &aliases {
            if !judged.contains_key(changed)
                && self.forbids(changed, PathKind::Directory).is_none()
                && let Some(forbidden) = self.forbids(name, PathKind::Leaf)
            {
                let why = format!("by the link `{link}` it is `{name}` too, and {}", forbidden.detail);
                judged.insert(*changed, broke(changed, PathRule::ForbiddenAlias, why));
            }
        }
        judged.into_values().collect()
    }

    fn forbids(&self, path: &RepoPath, kind: PathKind) -> Option<PathViolation> {
        let bytes = path.as_bytes();
        // The patterns have their letters folded; a name's blanks and dots at the end count for some systems only.
        let (letters, folded) = (fold_letters(bytes), fold_path(bytes));
        let forms = prefixes(bytes, kind).zip(prefixes(&letters, kind)).zip(prefixes(&folded, kind));
        let forbidden = |why: String| Some(broke(path, PathRule::Forbidden, why));
        for (((spelled, kind), (letters, _)), (folded, _)) in forms {
            // Most names are spelled as they are folded: then one comparison does for all.
            let mut forms = vec![spelled];
            forms.extend((letters != spelled).then_some(letters));
            forms.extend((folded != spelled && folded != letters).then_some(folded));
            let built_in = |table: &PatternTable| forms.iter().find_map(|form| table.hit(form, kind));
            if let Some(pattern) = built_in(&NEVER_LIFTED) {
                return forbidden(format!("`{pattern}` is never lifted: {}", forbidden_paths::why(pattern)));
            }
            if let Some(pattern) = forms.iter().find_map(|form| self.forbidden.hit(form, kind)) {
                return forbidden(format!("`{pattern}` of forbidden_paths matches it"));
            }
            if let Some(pattern) = built_in(&BUILT_IN)
                && !self.lifted.lifts(bytes, spelled, kind)
            {
                return forbidden(format!("`{pattern}` is forbidden: {}", forbidden_paths::why(pattern)));
            }
        }
        None
    }
}

impl LiftedRules {
    fn compile(patterns: &[Pattern]) -> Result<Self, BadPattern> {
        let (anchored, floating): (Vec<&str>, Vec<&str>) = patterns
            .iter()
            .map(Pattern::as_str)
            .partition(|text| text.trim_end_matches('/').contains('/') && !text.starts_with("**/"));
        Ok(Self {
            anchored: Globs::compile(anchored, LetterCase::Exact)?,
            floating: Globs::compile(floating, LetterCase::Exact)?,
        })
    }

    /// Whether the forbidden `part` of `path` is lifted.
    fn lifts(&self, path: &[u8], part: &[u8], kind: PathKind) -> bool {
        self.floating.covers(part, kind).is_some() || self.anchored.covers(path, kind).is_some()
    }
}

/// The names that a path is made of.
fn depth(path: &RepoPath) -> u64 {
    path.as_bytes().split(|byte| *byte == b'/').count() as u64
}

/// The maximum nesting at which a path is judged; unlimited while all changes together cost little.
fn deepest_judged(changes: &[ChangedFile]) -> u64 {
    let length = |change: &ChangedFile| change.path.as_bytes().len() as u64;
    let bytes: u64 = changes.iter().map(length).sum();
    let compared: u64 = changes.iter().map(|change| depth(&change.path) * length(change)).sum();
    if compared <= FREE_DEPTH_BYTES + USUAL_DEPTH * bytes { u64::MAX } else { USUAL_DEPTH }
}

fn bound_wildcards(terms: &Terms) -> Result<(), BadPattern> {
    let patterns =
        terms.allowed_paths.as_slice().iter().chain(&terms.forbidden_paths).chain(&terms.lift_paths);
    let mut found = 0;
    for pattern in patterns {
        found += pattern.as_str().matches(['*', '?', '[']).count();
        if found > MAX_WILDCARDS {
            let why = format!("the contract's patterns have more than {MAX_WILDCARDS} wildcards together");
            return Err(BadPattern { pattern: pattern.as_str().to_owned(), why });
        }
    }
    Ok(())
}

fn judge_submodule(change: &ChangedFile, submodules: &BTreeMap<Vec<u8>, &RepoPath>) -> Option<PathViolation> {
    if is_submodule(change) {
        return Some(broke(&change.path, PathRule::Submodule, "it is or was a submodule"));
    }
    if submodules.is_empty() {
        return None;
    }
    let folded = fold_path(change.path.as_bytes());
    let around = prefixes(&folded, PathKind::Leaf).find_map(|(prefix, _)| submodules.get(prefix))?;
    Some(broke(&change.path, PathRule::Submodule, format!("it is in the submodule `{around}`")))
}

/// A patch has content where the repository has a pointer. A deletion is what it seems.
fn judge_lfs_file(change: &ChangedFile, facts: &TreeFacts) -> Option<PathViolation> {
    let why = "Git LFS keeps it, and herma stores no file there: landed, its content would be in the repository itself";
    let is_kept = change.new.is_some() && facts.lfs_files.contains(&change.path);
    is_kept.then(|| broke(&change.path, PathRule::LfsFile, why))
}

/// The rules for the new content of a path. Unknown content counts as a violation.
fn judge_content(change: &ChangedFile, facts: &TreeFacts) -> Option<PathViolation> {
    let path = &change.path;
    match change.new.as_ref()?.mode {
        Mode::Submodule => None,
        Mode::Symlink => symlinks::escape(path, &facts.links)
            .map(|bad| broke(path, PathRule::SymlinkEscape, bad.to_string())),
        Mode::File | Mode::Executable => match facts.sizes.get(path) {
            Some(size) if *size <= MAX_FILE_BYTES => None,
            Some(size) => {
                Some(broke(path, PathRule::TooLarge, format!("{size} bytes are more than {MAX_FILE_BYTES}")))
            }
            None => Some(broke(path, PathRule::TooLarge, "its size is not known")),
        },
    }
}

/// The entries that could not be part of the patch.
fn judge_unsupported(facts: &TreeFacts) -> Vec<PathViolation> {
    let too_deep = "something in it has a path that is too long to be opened";
    let refused = "git refuses a symbolic link of this name";
    let each = |paths: &[RepoPath], why: &str| -> Vec<PathViolation> {
        paths.iter().map(|path| broke(path, PathRule::UnsupportedPath, why)).collect()
    };
    [each(&facts.too_deep, too_deep), each(&facts.refused_by_git, refused)].concat()
}

fn makes_repository(found: &BareRepository<'_>) -> PathViolation {
    let dir = found.dir.as_ref().map_or_else(|| "the root".to_owned(), |dir| format!("`{dir}`"));
    let why =
        format!("git takes {dir} for a bare repository, by HEAD with objects and refs, or with commondir");
    broke(found.changed, PathRule::BareRepository, why)
}

/// The repositories that git would find in a tree of these files and submodules, and that have a change in them.
#[must_use]
pub fn judge_repositories(
    changes: &[ChangedFile],
    files: &[RepoPath],
    submodules: &[RepoPath],
) -> Vec<PathViolation> {
    bare_repositories::find(changes, files, submodules).iter().map(makes_repository).collect()
}

fn is_added(change: &ChangedFile) -> bool {
    change.old.is_none() && change.new.is_some()
}

fn is_link(change: &ChangedFile) -> bool {
    change.new.as_ref().is_some_and(|entry| entry.mode == Mode::Symlink)
}

fn is_submodule(change: &ChangedFile) -> bool {
    [&change.old, &change.new].into_iter().flatten().any(|entry| entry.mode == Mode::Submodule)
}

fn broke(path: &RepoPath, rule: PathRule, detail: impl Into<String>) -> PathViolation {
    PathViolation { path: path.clone(), rule, detail: detail.into() }
}
