//! Prints the tree around a run.

use herma_core::RunId;

use crate::output::TreeNode;

/// The tree in lines, with a mark at the run that was asked about.
pub(super) fn lines(node: &TreeNode, shown: RunId) -> Vec<String> {
    let mut all = Vec::new();
    draw(node, 0, shown, &mut all);
    all
}

fn draw(node: &TreeNode, below: usize, shown: RunId, all: &mut Vec<String>) {
    let mark = if node.run_id == shown { "  <- this run" } else { "" };
    all.push(format!(
        "{}{}  {}  {}  {}{mark}",
        "  ".repeat(below),
        node.run_id,
        node.status.as_str(),
        node.contract_id,
        node.engine
    ));
    for child in &node.children {
        draw(child, below + 1, shown, all);
    }
}
