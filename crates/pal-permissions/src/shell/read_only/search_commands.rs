//! Read-only searches: `grep`, `rg`, `find`.

use super::option_parser::{self, CommandArgument, OptionTable};
use super::{Operand, OperandKind, hidden_files, operand};

/// Harmless tests of `find`, those with a value first. All others act on the files found.
const FIND_TESTS: [&str; 50] = [
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

/// Number of leading entries that take a value in the next word.
const N_FIND_TESTS_WITH_VALUE: usize = 28;

/// Options of `grep`.
const GREP: OptionTable = OptionTable {
    letters: "EFGPivwxcLlqsobHhnTZaIrUzy0123456789",
    letters_with_value: "ABCmed",
    long: "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp line-regexp count color colour files-without-match files-with-matches only-matching quiet silent no-messages byte-offset with-filename no-filename line-number initial-tab null text recursive line-buffered null-data",
    long_with_value: "regexp max-count after-context before-context context label binary-files include exclude exclude-dir directories group-separator",
};

/// Options of `rg`.
const RIPGREP: OptionTable = OptionTable {
    letters: "sSiFwxvcloHhnNpPqUau.0Ib",
    letters_with_value: "ABCmetTgMjrdE",
    long: "case-sensitive smart-case ignore-case fixed-strings word-regexp line-regexp invert-match count count-matches files-with-matches files-without-match only-matching with-filename no-filename line-number no-line-number column no-column heading no-heading pretty pcre2 quiet multiline multiline-dotall text unrestricted hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global no-ignore-exclude no-ignore-files no-messages null json stats trim vimgrep files type-list byte-offset no-config passthru no-unicode crlf line-buffered debug",
    long_with_value: "regexp type type-not glob iglob max-count after-context before-context context max-columns max-depth max-filesize threads replace sort sortr color colors encoding context-separator engine",
};

pub(super) fn grep(texts: &[&str]) -> Option<Vec<Operand>> {
    let arguments = option_parser::parse(texts, &[GREP])?;
    let is_recursive = arguments.iter().any(|argument| match argument {
        CommandArgument::Option("r" | "recursive", _) => true,
        CommandArgument::Option("d" | "directories", Some(what)) => "recurse".starts_with(what),
        _ => false,
    });
    let is_tame = !is_recursive || hidden_files::grep_skips_hidden(&arguments);
    Some(files(&arguments, false, is_recursive, is_tame))
}

pub(super) fn ripgrep(texts: &[&str]) -> Option<Vec<Operand>> {
    let arguments = option_parser::parse(texts, &[RIPGREP])?;
    let has_none = arguments
        .iter()
        .any(|argument| matches!(argument, CommandArgument::Option("files" | "type-list", _)));
    Some(files(&arguments, has_none, true, hidden_files::ripgrep_skips_hidden(&arguments)))
}

/// Files of a search; a recursive one without operands searches its directory.
fn files(
    arguments: &[CommandArgument<'_>],
    has_none: bool,
    is_recursive: bool,
    is_tame: bool,
) -> Vec<Operand> {
    let is_pattern =
        |argument: &CommandArgument<'_>| matches!(argument, CommandArgument::Option("e" | "regexp", _));
    let is_word = |argument: &CommandArgument<'_>| matches!(argument, CommandArgument::Operand(_));
    let kind = match (is_recursive, is_tame) {
        (false, _) => OperandKind::Content,
        (true, true) => OperandKind::Tree,
        (true, false) => OperandKind::Everything,
    };
    let n_patterns = usize::from(!has_none && !arguments.iter().any(is_pattern));
    // Some implementations read no options after the first file: a pattern there may be a file.
    let first = arguments.iter().position(is_word).unwrap_or(arguments.len());
    let late =
        arguments[first..].iter().filter(|argument| is_pattern(argument)).filter_map(
            |argument| match argument {
                CommandArgument::Option(_, value) => *value,
                CommandArgument::Operand(_) => None,
            },
        );
    let words = arguments.iter().filter_map(|argument| match argument {
        CommandArgument::Operand(word) => Some(*word),
        CommandArgument::Option(..) => None,
    });
    let mut operands: Vec<Operand> =
        words.skip(n_patterns).chain(late).map(|name| operand(name, kind)).collect();
    if is_recursive && operands.is_empty() {
        operands.push(operand(".", kind));
    }
    operands
}

pub(super) fn find(texts: &[&str]) -> Option<Vec<Operand>> {
    let mut operands = vec![operand(".", OperandKind::Names)];
    let mut texts = texts.iter();
    while let Some(text) = texts.next() {
        match FIND_TESTS.iter().position(|question| question == text) {
            Some(idx) if idx < N_FIND_TESTS_WITH_VALUE => drop(texts.next()?),
            Some(_) => {}
            None if matches!(*text, "!" | "(" | ")" | ",") => {}
            None if text.starts_with('-') => return None,
            None => operands.push(operand(text, OperandKind::Names)),
        }
    }
    Some(operands)
}
