//! Escapes: ways in which a command runs another one or does more than its name says.
//!
//! A rule matches a command by its first words. Some options and programs turn it into any other command; a
//! rule covers those only if it names them.

mod git_escapes;
mod inner_commands;
mod program_lists;
mod transfer_escapes;

pub(crate) use inner_commands::{InnerCommands, find_inner_commands};

use super::ShellWord;
use program_lists::{INTERPRETERS, OPTIONS, RUNNERS, SHELLS};

/// Options by which a program runs another one or writes files.
pub(super) struct EscapeOptions {
    pub(super) names: &'static [&'static str],
    /// Letters after a single dash.
    pub(super) letters: &'static str,
    /// Words after two dashes, which may be abbreviated.
    pub(super) long: &'static [&'static str],
    /// Exact words.
    pub(super) words: &'static [&'static str],
}

/// Index of the word from which on a command may do anything, with the reason. A rule must name this word to
/// cover it.
pub(crate) fn find_escape(words: &[ShellWord]) -> Option<(usize, String)> {
    let name = file_name(words.first()?)?;
    if ["ssh", "scp", "sftp", "slogin"].contains(&name) {
        // Their options name programs to run, also after the host.
        let idx = find(words, |text| text.starts_with('-')).filter(|idx| *idx > 1).unwrap_or(1);
        return Some((idx, format!("`{name}` runs other commands")));
    }
    if is_one_of(RUNNERS, name) {
        return Some((1, format!("`{name}` runs other commands")));
    }
    let found = match name {
        "git" => git_escapes::find_git_escape(words),
        "awk" | "gawk" | "mawk" | "nawk" => find(words, |text| {
            // `@` calls functions by computed names and includes files.
            ["system", "getline", "|", ">", "@", "-i", "-l", "-f", "-E", "--"]
                .iter()
                .any(|sign| text.contains(sign))
                || is_letter_before(text, "iflEDodp", "Fv")
        }),
        "tar" | "bsdtar" | "gtar" => transfer_escapes::tar(words),
        "curl" => transfer_escapes::curl(words),
        "wget" => transfer_escapes::wget(words),
        "sed" | "gsed" => sed(words),
        _ if is_one_of(SHELLS, name) => {
            find(words, |text| is_letter_of(text, "csi") || text.starts_with("--"))
        }
        _ if INTERPRETERS.contains(&unversioned(name)) => find(words, |text| {
            is_letter_of(text, "ceEpr") || ["--eval", "--print"].iter().any(|long| text.starts_with(long))
        }),
        _ => None,
    };
    let table = OPTIONS.iter().find(|options| options.names.contains(&name));
    let listed = table.and_then(|options| find(words, |text| options.has(text)));
    let is_watched = name == "git" || name == "sed" || table.is_some();
    let unknown = if is_watched { unknown_option(words) } else { None };
    let idx = [found, listed, unknown].into_iter().flatten().min()?;
    let word = words.get(idx).map(|word| word.raw.as_str()).unwrap_or_default();
    Some((idx, format!("`{word}` may make `{name}` do more than it says")))
}

impl EscapeOptions {
    /// Returns whether a word is in the list.
    pub(super) fn has(&self, text: &str) -> bool {
        is_letter_of(text, self.letters)
            || self.long.iter().any(|long| is_short_for(text, long))
            || self.words.iter().any(|word| text == *word || text.starts_with(&format!("{word}=")))
    }
}

/// Strips harmless wrappers such as `timeout 5`.
pub(crate) fn strip_wrappers(words: &[ShellWord]) -> &[ShellWord] {
    let mut left = words;
    for _ in 0..4 {
        let Some(n_own) = left.first().and_then(|word| n_words_of_wrapper(word.text()?, &left[1..])) else {
            break;
        };
        if left.len() <= n_own {
            break;
        }
        left = &left[n_own..];
    }
    left
}

fn n_words_of_wrapper(name: &str, rest: &[ShellWord]) -> Option<usize> {
    let texts: Vec<&str> = rest.iter().map_while(ShellWord::text).collect();
    let is_number =
        |text: &&str| !text.is_empty() && text.trim_end_matches(['s', 'm', 'h', 'd']).parse::<f64>().is_ok();
    match (name, texts.as_slice()) {
        ("time" | "nohup", [first, ..]) if !first.starts_with('-') => Some(1),
        ("time", ["-p", ..]) => Some(2),
        ("nice", ["-n", number, ..]) if number.parse::<i32>().is_ok() => Some(3),
        ("nice", [first, ..]) if !first.starts_with('-') => Some(1),
        ("timeout", ["-k" | "-s", _, limit, ..]) if is_number(limit) => Some(4),
        ("timeout", ["--foreground" | "--preserve-status", limit, ..]) if is_number(limit) => Some(3),
        ("timeout", [limit, ..]) if is_number(limit) => Some(2),
        ("stdbuf", ["-oL" | "-o0" | "-eL" | "-e0", ..]) => Some(2),
        _ => None,
    }
}

/// Returns whether a program is a shell or an interpreter.
pub(crate) fn is_interpreter(name: &str) -> bool {
    is_one_of(SHELLS, name) || INTERPRETERS.contains(&unversioned(name))
}

/// Program name without a version suffix: `python` for `python3.11`.
pub(crate) fn unversioned(name: &str) -> &str {
    name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.')
}

/// Returns whether a program runs its arguments as a command.
pub(crate) fn runs_another(words: &[ShellWord]) -> bool {
    let name = words.first().and_then(file_name).unwrap_or_default();
    is_one_of(RUNNERS, name)
        || is_one_of(SHELLS, name)
        || ["time", "timeout", "nice", "nohup", "stdbuf", "find"].contains(&name)
}

/// Returns whether a command can change what paths resolve to.
pub(crate) fn changes_paths(words: &[ShellWord]) -> bool {
    const PATH_CHANGERS: [&str; 14] = [
        "ln", "cp", "mv", "tar", "bsdtar", "unzip", "7z", "git", "rsync", "cpio", "patch", "install",
        "mount", "link",
    ];
    words.first().and_then(file_name).is_some_and(|name| PATH_CHANGERS.contains(&name))
}

/// Returns whether a command prints the content of its files.
pub(crate) fn shows_content(words: &[ShellWord]) -> bool {
    const CONTENT_PRINTERS: [&str; 24] = [
        "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "sed", "awk", "sort", "uniq", "cut", "diff",
        "cmp", "less", "more", "tac", "nl", "od", "strings", "xxd", "base64", "cp", "jq",
    ];
    words.first().and_then(file_name).is_some_and(|name| CONTENT_PRINTERS.contains(&name))
}

/// Returns whether a command reads folders recursively.
pub(crate) fn is_recursive_reader(words: &[ShellWord]) -> bool {
    let has = |letters: &str| {
        find(words, |text| is_letter_of(text, letters) || is_short_for(text, "recursive")).is_some()
    };
    match words.first().and_then(file_name) {
        Some("rg" | "ag" | "ack" | "tar" | "bsdtar" | "rsync" | "zip" | "scp") => true,
        Some("grep" | "egrep" | "fgrep" | "diff" | "cp") => {
            has("rRad") || find(words, |text| text.contains("recurs")).is_some()
        }
        _ => false,
    }
}

/// Program name without its folder.
pub(crate) fn file_name(word: &ShellWord) -> Option<&str> {
    word.text().map(|name| name.rsplit('/').next().unwrap_or(name))
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.contains(&name)
}

/// Index of the first argument that satisfies a predicate.
pub(super) fn find(words: &[ShellWord], is_so: impl Fn(&str) -> bool) -> Option<usize> {
    let is_so = |(_, word): &(usize, &ShellWord)| word.text.as_deref().is_some_and(&is_so);
    words.iter().enumerate().skip(1).find(is_so).map(|(idx, _)| idx)
}

/// Returns whether a word is a group of short options with one of these letters.
pub(super) fn is_letter_of(text: &str, letters: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| !rest.starts_with('-') && rest.contains(|letter| letters.contains(letter)))
}

/// The same, up to a letter that takes the rest of the word as value.
fn is_letter_before(text: &str, letters: &str, with_value: &str) -> bool {
    let Some(group) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { return false };
    let end = group.find(|letter| with_value.contains(letter)).unwrap_or(group.len());
    group[..end].contains(|letter| letters.contains(letter))
}

/// Returns whether a word is this long option or an abbreviation.
pub(super) fn is_short_for(text: &str, long: &str) -> bool {
    let given = text.strip_prefix("--").and_then(|rest| rest.split('=').next());
    given.is_some_and(|given| !given.is_empty() && long.starts_with(given))
}

/// Index of a word that may become an option when the line runs.
fn unknown_option(words: &[ShellWord]) -> Option<usize> {
    let is_message = |word: &ShellWord| matches!(word.raw.as_str(), "-m" | "-am" | "--message");
    let may_be = |idx: usize| {
        let word = &words[idx];
        let is_value = word.raw.starts_with('"') && is_message(&words[idx - 1]);
        // A file name may look like an option.
        let is_open_glob = word.is_glob && word.raw.starts_with(['*', '?', '[']);
        (word.text.is_none() && starts_open(&word.raw) && !is_value) || is_open_glob
    };
    (1..words.len()).find(|idx| may_be(*idx))
}

/// Returns whether a word may begin with a dash when the line runs. Quotes and backslashes may hide the first
/// character.
fn starts_open(raw: &str) -> bool {
    let is_plain = |first: char| {
        first.is_alphanumeric() || matches!(first, '.' | '/' | '_' | '+' | '@' | ',' | '=' | ':' | '%')
    };
    !raw.starts_with(is_plain)
}

/// Index of a `sed` script that does more than replace, print or delete lines.
fn sed(words: &[ShellWord]) -> Option<usize> {
    let option = find(words, |text| {
        is_letter_of(text, "ef") || ["expression", "file"].iter().any(|long| is_short_for(text, long))
    });
    let script = (1..words.len()).find(|idx| !words[*idx].raw.starts_with('-'))?;
    let is_simple = words[script].text().is_some_and(is_simple_sed);
    option.or((!is_simple).then_some(script))
}

fn is_simple_sed(script: &str) -> bool {
    let lines =
        |text: &str| text.chars().all(|character| character.is_ascii_digit() || ",$".contains(character));
    if script.strip_suffix(['p', 'd', 'q']).is_some_and(lines) {
        return true;
    }
    let Some(rest) = script.strip_prefix('s') else { return false };
    let Some(sign) = rest.chars().next().filter(|sign| "/|#,@".contains(*sign)) else { return false };
    let pieces: Vec<&str> = rest.split(sign).collect();
    let flags = |text: &str| text.chars().all(|flag| flag.is_ascii_digit() || "gpI".contains(flag));
    matches!(pieces.as_slice(), ["", _, _, last] if flags(last)) && !script.contains(['\n', '\\'])
}
