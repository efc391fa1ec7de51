//! Searches: `grep`, `rg`, `find`.

use super::{Operand, OperandKind, operand};
use crate::shell::hatch::{is_letter_of, is_short_for};

/// What `find` may be asked. Everything else does something with what it finds.
const QUESTIONS: [&str; 50] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-printf",
    "-lname",
    "-ilname",
    "-inum",
    "-links",
    "-empty",
    "-not",
    "-o",
    "-or",
    "-a",
    "-and",
    "-print",
    "-print0",
    "-prune",
    "-ls",
    "-depth",
    "-xdev",
    "-mount",
    "-P",
    "-executable",
    "-readable",
    "-writable",
    "-true",
    "-false",
    "-daystart",
    "-quit",
    "-nouser",
];

/// How many of these have a value in the next word, from the first on.
const N_WITH_VALUE: usize = 28;

pub(super) fn grep(texts: &[&str]) -> Option<Vec<Operand>> {
    let refused = ["file", "dereference-recursive", "exclude-from"];
    let is_refused =
        |text: &&str| is_letter_of(text, "fR") || refused.iter().any(|long| is_short_for(text, long));
    if texts.iter().any(is_refused) {
        return None;
    }
    let has_pattern = texts.iter().any(|text| is_letter_of(text, "e") || is_short_for(text, "regexp"));
    let is_recursive = texts.iter().any(|text| is_letter_of(text, "rd") || text.contains("recurs"));
    Some(files(texts, !has_pattern, is_recursive))
}

pub(super) fn ripgrep(texts: &[&str]) -> Option<Vec<Operand>> {
    let refused =
        ["pre", "pre-glob", "file", "hostname-bin", "search-zip", "follow", "ignore-file", "generate"];
    let is_refused =
        |text: &&str| is_letter_of(text, "fzL") || refused.iter().any(|long| is_short_for(text, long));
    if texts.iter().any(is_refused) {
        return None;
    }
    let has_pattern = texts.iter().any(|text| {
        is_letter_of(text, "e")
            || ["regexp", "files", "type-list"].iter().any(|long| is_short_for(text, long))
    });
    Some(files(texts, !has_pattern, true))
}

/// The files of a search; one that goes through folders is without any about the directory that it runs in. Values of
/// options may be among them, which does no harm: they are taken for files of the project.
fn files(texts: &[&str], is_pattern_first: bool, is_recursive: bool) -> Vec<Operand> {
    let all_are = texts.iter().position(|text| *text == "--").unwrap_or(texts.len());
    let is_file = |(idx, text): &(usize, &&str)| (*idx > all_are || !text.starts_with('-')) && **text != "--";
    let named = texts.iter().enumerate().filter(is_file).skip(usize::from(is_pattern_first));
    let mut operands: Vec<Operand> = named.map(|(_, text)| operand(text, OperandKind::Content)).collect();
    if is_recursive && operands.is_empty() {
        operands.push(operand(".", OperandKind::Content));
    }
    operands
}

pub(super) fn find(texts: &[&str]) -> Option<Vec<Operand>> {
    let mut operands = vec![operand(".", OperandKind::Names)];
    let mut texts = texts.iter();
    while let Some(text) = texts.next() {
        match QUESTIONS.iter().position(|question| question == text) {
            Some(idx) if idx < N_WITH_VALUE => drop(texts.next()?),
            Some(_) => {}
            None if matches!(*text, "!" | "(" | ")" | ",") => {}
            None if text.starts_with('-') => return None,
            None => operands.push(operand(text, OperandKind::Names)),
        }
    }
    Some(operands)
}
