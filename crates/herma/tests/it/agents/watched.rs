//! Tells whether anybody looked at places where nobody may: the kernel says so of every process, whatever it calls them.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use rustix::io::Errno;

/// Directories and files that are watched.
pub(super) struct Watched {
    events: OwnedFd,
    places: BTreeMap<i32, PathBuf>,
}

impl Watched {
    /// Watches these files and every directory down to them, but not the root.
    pub(super) fn files(root: &Path, files: &[&str]) -> Self {
        let events = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        let mut watched = Self { events, places: BTreeMap::new() };
        for file in files {
            for place in Path::new(file).ancestors().filter(|place| !place.as_os_str().is_empty()) {
                let flags = inotify::WatchFlags::ALL_EVENTS;
                let number = inotify::add_watch(&watched.events, root.join(place), flags).unwrap();
                watched.places.insert(number, place.to_owned());
            }
        }
        // It sees what it is for.
        drop(fs::read(root.join(files[0])).unwrap());
        assert!(!watched.touched().is_empty(), "nothing can be seen of {}", files[0]);
        watched
    }

    /// The files touched since the last call.
    pub(super) fn touched(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        let mut touched = Vec::new();
        loop {
            match events.next() {
                Ok(event) => {
                    let place = self.places.get(&event.wd()).map(|place| place.display().to_string());
                    touched.push(format!("{} {:?}", place.unwrap_or_default(), event.events()));
                }
                Err(Errno::WOULDBLOCK) => return touched,
                Err(error) => panic!("cannot see what was touched: {error}"),
            }
        }
    }
}
