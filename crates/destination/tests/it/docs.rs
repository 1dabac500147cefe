//! The page about confinement says what the table of probes says.

use std::fs;
use std::path::Path;

use herma_destination::{Noticed, PIECES, PieceRow, Wall, probe};

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
fn the_page_lists_every_piece_of_a_containers_walls_and_no_other() {
    let page = page();
    let (_, table) = page.split_once("| --- | --- | --- | --- |\n| `read_only_image`").unwrap();
    let (rows, _) = table.split_once("\n\n").unwrap();
    let listed = format!("| `read_only_image`{rows}\n");
    let row = |PieceRow { name, wall, without, noticed, .. }: &PieceRow| {
        let noticed = match noticed {
            Noticed::ByProbe(probe) => format!("probe `{probe}`"),
            Noticed::Inside(_) => "herma's first process inside, which starts nothing".to_owned(),
            Noticed::Outside(_) => "herma outside, which starts nothing".to_owned(),
        };
        format!("| `{name}` | `{wall}` | {without} | {noticed} |\n")
    };
    assert_eq!(listed, PIECES.iter().map(row).collect::<String>());
}

#[test]
fn the_page_names_every_wall() {
    let page = page();
    let (walls, _) = page.split_once("## Limits").unwrap();
    for wall in Wall::ALL {
        assert!(walls.contains(&format!("`{wall}`")), "{wall}");
    }
}
