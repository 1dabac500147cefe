//! The landing itself: one pack, then one ref in one transaction.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::pack::Pack;
use super::prepare::waiting_packs;
use super::{LandError, Landing};
use crate::error::GitError;
use crate::git_dir::GitDir;
use crate::plain::has_plain_paths;
use crate::source::SourceRepo;

/// How long a landing waits for a git command of somebody else, such as one that holds a lock or collects garbage.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(3);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The result of one attempt to land.
enum Attempt {
    Landed,
    /// git or the disk refused it; another attempt may succeed.
    Failed(GitError),
}

impl SourceRepo {
    /// Copies the objects into the target and creates the ref, if the base has not moved and no ref of that name
    /// exists. Otherwise the target is left, or restored, as it was.
    ///
    /// A process that dies midway leaves at most a pack that no ref names; [`SourceRepo::unland`] removes it.
    pub fn land(&self, git_dir: &GitDir, landing: &Landing) -> Result<(), LandError> {
        landing.check()?;
        self.land_checked(git_dir, landing)
    }

    /// The same for a landing whose names were checked.
    pub(super) fn land_checked(&self, git_dir: &GitDir, landing: &Landing) -> Result<(), LandError> {
        let deadline = Instant::now() + MAX_LOCK_WAIT;
        while let Attempt::Failed(error) = self.try_to_land(git_dir, landing)? {
            if error.is_write_failure() {
                return Err(error.into());
            }
            if !error.is_by_another_git() || Instant::now() >= deadline {
                return Err(LandError::Rejected { cause: error.to_string() });
            }
            std::thread::sleep(LOCK_RETRY_INTERVAL);
        }
        // A link that appeared after the first look has let the transaction write somewhere else.
        if let Err(source) = has_plain_paths(&self.common_dir) {
            self.take_back(landing).map_err(|e| self.unplaced(e))?;
            return Err(LandError::NotPlain(source));
        }
        Ok(())
    }

    /// One attempt. If it failed, the target is as it was.
    fn try_to_land(&self, git_dir: &GitDir, landing: &Landing) -> Result<Attempt, LandError> {
        self.refuse(landing)?;
        let dir = self.pack_dir();
        let landed = Pack { dir: &dir, name: &landing.pack }
            .bring_in(&waiting_packs(git_dir))
            .and_then(|()| self.create_ref(git_dir, landing));
        let Err(error) = landed else { return Ok(Attempt::Landed) };
        self.remove_pack(landing).map_err(|e| self.unplaced(e))?;
        // git tells the reason only in text; the present state tells it too.
        self.refuse(landing)?;
        Ok(Attempt::Failed(self.unplaced(error)))
    }

    /// The reasons against the landing, as far as reading can tell.
    fn refuse(&self, landing: &Landing) -> Result<(), LandError> {
        has_plain_paths(&self.common_dir)?;
        if let Some(reference) = self.in_the_way(landing).map_err(|e| self.unplaced(e))? {
            return Err(LandError::RefTaken { reference });
        }
        match &landing.base_ref {
            Some(base) if !self.still_stands(base).map_err(|e| self.unplaced(e))? => {
                Err(LandError::BaseMoved { reference: base.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The compare-and-swap: the base has not moved and the ref is new, or nothing happens.
    fn create_ref(&self, git_dir: &GitDir, landing: &Landing) -> Result<(), GitError> {
        let base = landing.base_ref.iter();
        let mut commands: Vec<String> =
            base.clone().map(|base| format!("option no-deref\nverify {} {}", base.name, base.id)).collect();
        commands.push(format!("create {} {}", landing.reference, landing.commit));
        // To lock a packed ref git creates the directories of its name and leaves them.
        let names = base.map(|base| &base.name).chain([&landing.reference]);
        let made: Vec<PathBuf> = names.flat_map(|name| self.missing_parents(name)).collect();
        let done = match &landing.base_ref {
            Some(base) if base.name == "HEAD" => self.transaction(&self.git_dir, &commands),
            _ => self.view(git_dir).and_then(|view| self.transaction(&view, &commands)),
        };
        for dir in made {
            // A directory that is not empty is in use.
            let _ = std::fs::remove_dir(dir);
        }
        done
    }

    /// A git directory with the target's refs and a HEAD of its own, like that of a second work tree. If a branch is
    /// as much as verified while HEAD is on it, git writes that into the log of HEAD, whatever the settings say.
    fn view(&self, git_dir: &GitDir) -> Result<PathBuf, GitError> {
        let view = waiting_packs(git_dir).join("view");
        std::fs::create_dir_all(&view).map_err(GitError::file("make", &view))?;
        let common_dir = [self.common_dir.as_os_str().as_encoded_bytes(), b"\n"].concat();
        for (name, content) in [("HEAD", b"ref: refs/heads/herma/none\n".to_vec()), ("commondir", common_dir)]
        {
            let path = view.join(name);
            std::fs::write(&path, content).map_err(GitError::file("write", path))?;
        }
        Ok(view)
    }

    /// The missing directories of a ref's name, the innermost first.
    fn missing_parents(&self, name: &str) -> Vec<PathBuf> {
        let path = self.common_dir.join(name);
        let inside = path.ancestors().skip(1).take_while(|dir| *dir != self.common_dir);
        inside.filter(|dir| !dir.exists()).map(std::path::Path::to_owned).collect()
    }
}
