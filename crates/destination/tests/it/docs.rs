//! The page about confinement matches the table of probes.

use std::fs;
use std::path::Path;

use herma_destination::{DetectedBy, IsolationLayer, RESTRICTIONS, RestrictionRow, probe};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/confinement.md")).unwrap()
}

#[test]
fn the_page_lists_every_probe_with_its_layer_and_no_other() {
    let page = page();
    let (_, table) = page.split_once("| --- | --- | --- |\n| `write_root`").unwrap();
    let listed = format!("| `write_root`{table}");
    let row = |row: probe::ProbeRow| format!("| `{}` | {} | `{}` |\n", row.name, row.what, row.layer);
    assert_eq!(listed, probe::rows().map(row).collect::<String>());
}

#[test]
fn the_page_lists_every_container_restriction_and_no_other() {
    let page = page();
    let (_, table) = page.split_once("| --- | --- | --- | --- |\n| `read_only_image`").unwrap();
    let (rows, _) = table.split_once("\n\n").unwrap();
    let listed = format!("| `read_only_image`{rows}\n");
    let row = |RestrictionRow { name, layer, without, detected_by, .. }: &RestrictionRow| {
        let detected_by = match detected_by {
            DetectedBy::ByProbe(probe) => format!("probe `{probe}`"),
            DetectedBy::Inside(_) => "herma's first process inside, which starts nothing".to_owned(),
            DetectedBy::Outside(_) => "herma outside, which starts nothing".to_owned(),
        };
        format!("| `{name}` | `{layer}` | {without} | {detected_by} |\n")
    };
    assert_eq!(listed, RESTRICTIONS.iter().map(row).collect::<String>());
}

#[test]
fn the_page_names_every_isolation_layer() {
    let page = page();
    let (layers, _) = page.split_once("## Limits").unwrap();
    for layer in IsolationLayer::ALL {
        assert!(layers.contains(&format!("`{layer}`")), "{layer}");
    }
}
