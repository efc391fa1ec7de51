//! Programs that only look, whatever they are given, but for some options.

/// What a program shows of the files that it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    Content,
    Names,
    /// It takes no files.
    Nothing,
}

/// A program that only looks.
pub(super) struct Viewer {
    pub(super) names: &'static [&'static str],
    pub(super) shows: Shows,
    /// Letters behind a single dash with which it does more.
    pub(super) refused: &'static str,
    /// Words behind two dashes with which it does more.
    pub(super) refused_long: &'static [&'static str],
    /// Words that can be no files to it, such as what stands between fields. All others may be: which of them are values
    /// of options depends on the options before them.
    pub(super) no_files: &'static [&'static str],
    /// Whether names of files in place of a pattern can do no harm, even if they look like options.
    pub(super) takes_globs: bool,
    pub(super) n_operands_max: usize,
}

const PLAIN: Viewer = Viewer {
    names: &[],
    shows: Shows::Content,
    refused: "",
    refused_long: &["files0-from"],
    no_files: &[],
    takes_globs: false,
    n_operands_max: usize::MAX,
};

/// The programs.
pub(super) const VIEWERS: &[Viewer] = &[
    Viewer { names: &["cat", "tac", "nl", "rev", "fold", "comm", "cmp", "od", "head", "tail"], ..PLAIN },
    Viewer { names: &["cut", "paste", "column"], no_files: &["/"], ..PLAIN },
    Viewer {
        names: &["sort"],
        refused: "oTS",
        refused_long: &["output", "compress-program", "temporary-directory", "files0-from", "random-source"],
        no_files: &["/"],
        ..PLAIN
    },
    Viewer { names: &["uniq"], n_operands_max: 1, ..PLAIN },
    Viewer {
        names: &["diff"],
        refused: "rX",
        refused_long: &["recursive", "from-file", "to-file", "exclude-from", "starting-file"],
        ..PLAIN
    },
    Viewer {
        names: &["md5sum", "sha1sum", "sha256sum", "cksum"],
        refused: "c",
        refused_long: &["check"],
        ..PLAIN
    },
    Viewer { names: &["wc"], shows: Shows::Names, takes_globs: true, ..PLAIN },
    Viewer { names: &["ls", "stat", "readlink"], shows: Shows::Names, takes_globs: true, ..PLAIN },
    Viewer {
        names: &["du"],
        shows: Shows::Names,
        refused: "X",
        refused_long: &["files0-from", "exclude-from"],
        takes_globs: true,
        ..PLAIN
    },
    Viewer {
        names: &["file"],
        shows: Shows::Names,
        refused: "fmCzZ",
        refused_long: &["files-from", "magic-file", "compile", "uncompress"],
        ..PLAIN
    },
    Viewer {
        names: &["tree"],
        shows: Shows::Names,
        refused: "oRH",
        refused_long: &["output", "fromfile", "fromtabfile", "gitfile", "infofile"],
        ..PLAIN
    },
    Viewer {
        names: &[
            "true", "false", ":", "pwd", "whoami", "id", "groups", "uname", "arch", "nproc", "uptime", "tr",
            "basename", "dirname", "which", "type", "df", "free", "seq", "exit", "break", "continue",
            "realpath", "sleep",
        ],
        shows: Shows::Nothing,
        ..PLAIN
    },
    Viewer { names: &["hostname"], shows: Shows::Names, refused: "bF", n_operands_max: 0, ..PLAIN },
];

/// Programs that may be asked for their version.
pub(super) const ASKED_FOR_VERSION: [&str; 30] = [
    "cargo", "rustc", "rustup", "node", "npm", "pnpm", "yarn", "bun", "deno", "python", "python3", "pip",
    "uv", "ruby", "go", "java", "javac", "gcc", "clang", "make", "cmake", "docker", "kubectl", "bash", "rg",
    "jq", "gh", "tsc", "php", "perl",
];
