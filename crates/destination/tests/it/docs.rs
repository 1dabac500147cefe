//! The page about confinement says what the table of probes says.

use std::fs;
use std::path::Path;

use herma_destination::{Wall, probe};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/confinement.md")).unwrap()
}

#[test]
fn the_page_lists_every_probe_with_its_wall_and_no_other() {
    let page = page();
    let (_, table) = page.split_once("| --- | --- | --- |\n| `write_root`").unwrap();
    let listed = format!("| `write_root`{table}");
    let row = |row: probe::Row| format!("| `{}` | {} | `{}` |\n", row.name, row.what, row.wall);
    assert_eq!(listed, probe::rows().map(row).collect::<String>());
}

#[test]
fn the_page_names_every_wall() {
    let page = page();
    let (walls, _) = page.split_once("## Limits").unwrap();
    for wall in Wall::ALL {
        assert!(walls.contains(&format!("`{wall}`")), "{wall}");
    }
}
