//! Helpers for nodes of the syntax tree.

use tree_sitter::Node;

/// Returns whether a node kind is a word or a piece of one.
pub(super) fn is_literal(kind: &str) -> bool {
    const LITERALS: [&str; 13] = [
        "word",
        "string",
        "raw_string",
        "translated_string",
        "ansi_c_string",
        "number",
        "expansion",
        "simple_expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "brace_expression",
        "concatenation",
    ];
    LITERALS.contains(&kind)
}

/// All children of a node, including operators.
pub(super) fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |idx| node.child(idx))
}
