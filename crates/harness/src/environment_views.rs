//! The views of an environment: the agent and every verification command see files of their own. Large directories are overlays where
//! the destination can mount them; everything else is copied.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_core::RunId;
use herma_destination::{Destination, Overlay};
use herma_environments::layers::{LayerInUse, TreeLimits, ViewMount, copy_tree, take_over};
use herma_home::{RunDirs, remove_tree};

use crate::context::RunContext;
use crate::error::Stop;

/// Makes views of one layer.
#[derive(Clone, Debug)]
pub(crate) struct ViewMaker {
    /// The directory of the changes, one for each view; none where views are copies.
    changes: Option<PathBuf>,
}

/// A home, with the overlays of the job that uses it: those in the home and those in its checkout.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) home: PathBuf,
    pub(crate) overlays: Vec<Overlay>,
}

impl ViewMaker {
    /// Tries whether the destination can mount the layer.
    pub(crate) fn of(
        layer: &LayerInUse,
        dirs: &RunDirs,
        run_id: RunId,
        destination: &dyn Destination,
    ) -> Result<Self, Stop> {
        if !destination.capabilities().mounts_overlays() || !layer.is_worth_mounts() {
            return Ok(Self { changes: None });
        }
        let changes = dirs.changes();
        let trial = changes.join("trial");
        DirBuilder::new().mode(0o700).recursive(true).create(&trial).map_err(Stop::write)?;
        let works = destination.can_overlay(run_id, layer.dir(), &trial).map_err(Stop::write)?;
        remove_tree(if works { &trial } else { &changes }).map_err(Stop::write)?;
        Ok(Self { changes: works.then_some(changes) })
    }

    /// Writes a view into an empty home and a checkout of the base.
    pub(crate) fn write(&self, layer: &LayerInUse, home: &Path, checkout: &Path) -> Result<View, Stop> {
        let view = |overlays| View { home: home.to_owned(), overlays };
        let Some(changes) = &self.changes else {
            layer.write_view(home, checkout).map_err(Stop::write)?;
            return Ok(view(Vec::new()));
        };
        let mounts = layer.write_view_around_mounts(home, checkout, &TreeLimits::default());
        Ok(view(overlays(changes, home, mounts.map_err(Stop::write)?)?))
    }

    /// Another home for a checkout that has its view.
    pub(crate) fn another_home(&self, layer: &LayerInUse, first: &View, home: &Path) -> Result<View, Stop> {
        DirBuilder::new().mode(0o700).create(home).map_err(Stop::write)?;
        let view = |overlays| View { home: home.to_owned(), overlays };
        let Some(changes) = &self.changes else {
            copy_tree(&layer.home(), home).map_err(Stop::write)?;
            return Ok(view(Vec::new()));
        };
        let mount = layer.write_home_around_mounts(home, &TreeLimits::default()).map_err(Stop::write)?;
        let of_checkout = first.overlays.iter().filter(|overlay| overlay.root != first.home).cloned();
        Ok(view(of_checkout.chain(overlays(changes, home, mount)?).collect()))
    }
}

/// A directory of changes for each mount. Views have different homes.
fn overlays(
    changes: &Path,
    home: &Path,
    mounts: impl IntoIterator<Item = ViewMount>,
) -> Result<Vec<Overlay>, Stop> {
    let of_view = changes.join(home.file_name().unwrap_or_default());
    let make = |(number, mount): (usize, ViewMount)| -> io::Result<Overlay> {
        let dir = of_view.join(number.to_string());
        let (upper, work) = (dir.join("upper"), dir.join("work"));
        DirBuilder::new().mode(0o700).recursive(true).create(&work)?;
        mount.make_upper(&upper)?;
        let ViewMount { lower, root, place } = mount;
        Ok(Overlay { lower, upper, work, root, place })
    };
    mounts.into_iter().enumerate().map(make).collect::<io::Result<_>>().map_err(Stop::write)
}

impl View {
    /// Puts what a dead job changed in the overlays of its checkout in their place, so that it is collected like everything else.
    pub(crate) fn take_over(&self, ctx: &RunContext<'_>) -> Result<(), Stop> {
        for Overlay { upper, root, place, .. } in self.overlays.iter().filter(|o| o.root != self.home) {
            if !take_over(upper, root, place).map_err(Stop::write)? {
                let place = place.display();
                ctx.note(&format!(
                    "environment: `{place}` was moved; what was changed in it is not collected"
                ));
            }
        }
        Ok(())
    }
}
