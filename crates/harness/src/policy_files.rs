//! The operator's policies: `policy/*.cedar` in herma's home.

use std::fs;
use std::io;
use std::path::Path;

use herma_home::Home;
use herma_policy::{Policies, PolicyFile, PolicyProblem, Problems};

use crate::file_reading::read_regular;

/// The directory in herma's home.
pub const POLICY_DIR: &str = "policy";

/// The largest file of policies.
const MAX_BYTES: u64 = 256 << 10;
/// The most files.
const MAX_FILES: usize = 64;

/// The policies cannot be used, and without them nothing is judged: no run starts.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// They cannot be read.
    #[error("the policies in {place} cannot be read: {why}")]
    Read {
        /// The directory or the file.
        place: String,
        /// Why not.
        why: String,
    },
    /// They say something that a policy cannot say.
    #[error("the policies cannot be used:\n{0}")]
    Wrong(#[from] Problems),
}

/// The policies of an installation: herma's and the operator's.
pub(crate) fn policies(home: &Home) -> Result<Policies, PolicyError> {
    Ok(Policies::compile(&read_policies(&home.root().join(POLICY_DIR))?)?)
}

/// The operator's policies in this directory; none where there is no such directory.
pub fn read_policies(dir: &Path) -> Result<Vec<PolicyFile>, PolicyError> {
    let failed = |place: &Path, why: &dyn ToString| PolicyError::Read {
        place: place.display().to_string(),
        why: why.to_string(),
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(dir, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| failed(dir, &error))?.file_name();
        let Some(name) = name.to_str() else {
            return Err(failed(dir, &format!("{} is no text", name.display())));
        };
        match Path::new(name).extension().and_then(|end| end.to_str()) {
            Some("cedar") => names.push(name.to_owned()),
            // The cases of `herma policy test` may lie beside what they are about.
            Some("yaml") => {}
            // A rule whose file is not read would silently forbid nothing.
            _ => {
                let why =
                    format!("{name} is neither a policy (.cedar) nor a file of cases (.yaml); take it away");
                return Err(failed(dir, &why));
            }
        }
    }
    if names.len() > MAX_FILES {
        return Err(failed(dir, &format!("there are more than {MAX_FILES} of them")));
    }
    names.sort();
    names.into_iter().map(|name| read_policy(&dir.join(&name), name)).collect()
}

/// One file of policies, under this name.
pub fn read_policy(path: &Path, name: String) -> Result<PolicyFile, PolicyError> {
    let bytes = read_regular(path, MAX_BYTES)
        .map_err(|error| PolicyError::Read { place: path.display().to_string(), why: error.to_string() })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let (file, problem) = (name.clone(), "it is not UTF-8".to_owned());
        Problems(vec![PolicyProblem { file, line: None, column: None, problem, help: None }])
    })?;
    Ok(PolicyFile { name, text })
}

/// The bytes of a file of cases, which may lie anywhere.
pub fn read_policy_cases(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_certainly_no_rule_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let policy = dir.path().join("policy");
        assert_eq!(read_policies(&policy).unwrap(), []);
        fs::create_dir(&policy).unwrap();
        for name in ["b.cedar", "a.cedar", "cases.yaml"] {
            fs::write(policy.join(name), name).unwrap();
        }
        let names: Vec<String> = read_policies(&policy).unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["a.cedar", "b.cedar"]);
        for name in ["a.cedar.bak", "no-curl.ceder", "README"] {
            fs::write(policy.join(name), "").unwrap();
            let error = read_policies(&policy).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            fs::remove_file(policy.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", policy.join("link.cedar")).unwrap();
        assert!(read_policies(&policy).is_err());
    }
}
