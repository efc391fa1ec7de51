//! Programs that change nothing with the options listed here.
//!
//! The list is exact: a command with any other option asks. Options that write, run a program, follow links,
//! read a list of files from a file or never end are left out on purpose.

use super::option_parser::{OptionTable, table};

/// Information that a program prints about its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandDisclosure {
    Content,
    Names,
    /// Operands are not files.
    Nothing,
}

/// Globs that a program may get as operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GlobPolicy {
    No,
    /// Globs that begin with a folder: their matches cannot be read as options.
    BelowFolder,
    /// Any glob: no option of this program does harm.
    Any,
}

/// Exact form of a read-only command.
#[derive(Clone, Copy)]
pub(super) struct CommandForm {
    /// Programs with this form.
    pub(super) names: &'static [&'static str],
    pub(super) shows: OperandDisclosure,
    pub(super) options: OptionTable,
    /// Globs allowed as operands.
    pub(super) globs: GlobPolicy,
    pub(super) n_operands_max: usize,
}

const CONTENT: CommandForm = CommandForm {
    names: &[],
    shows: OperandDisclosure::Content,
    options: OptionTable::NONE,
    globs: GlobPolicy::No,
    n_operands_max: usize::MAX,
};
const NAMES: CommandForm = CommandForm { shows: OperandDisclosure::Names, ..CONTENT };
const NOTHING: CommandForm = CommandForm { shows: OperandDisclosure::Nothing, ..CONTENT };

/// All read-only programs without special rules.
pub(super) const FORMS: &[CommandForm] = &[
    CommandForm {
        names: &["cat"],
        options: table(
            "AbeEnstTuv",
            "",
            "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
            "",
        ),
        ..CONTENT
    },
    CommandForm { names: &["tac"], options: table("br", "s", "before regex", "separator"), ..CONTENT },
    CommandForm { names: &["rev"], ..CONTENT },
    CommandForm {
        names: &["nl"],
        options: table("p", "bdfhilnsvw", "no-renumber", "body-numbering"),
        ..CONTENT
    },
    CommandForm { names: &["fold"], options: table("bs", "w", "bytes spaces", "width"), ..CONTENT },
    CommandForm {
        names: &["comm"],
        options: table("123z", "", "check-order nocheck-order total", "output-delimiter"),
        ..CONTENT
    },
    CommandForm {
        names: &["cmp"],
        options: table("bls", "in", "print-bytes verbose quiet silent", "ignore-initial bytes"),
        ..CONTENT
    },
    CommandForm {
        names: &["od"],
        options: table(
            "abcdfiloxsv",
            "AjNSt",
            "output-duplicates",
            "address-radix skip-bytes read-bytes format",
        ),
        ..CONTENT
    },
    CommandForm {
        names: &["head"],
        options: table("qvz0123456789", "cn", "quiet silent verbose zero-terminated", "bytes lines"),
        ..CONTENT
    },
    CommandForm {
        names: &["tail"],
        options: table("qvz0123456789", "cn", "quiet silent verbose zero-terminated", "bytes lines"),
        ..CONTENT
    },
    CommandForm {
        names: &["cut"],
        options: table(
            "snz",
            "bcdf",
            "complement only-delimited zero-terminated",
            "bytes characters delimiter fields output-delimiter",
        ),
        ..CONTENT
    },
    CommandForm {
        names: &["paste"],
        options: table("sz", "d", "serial zero-terminated", "delimiters"),
        ..CONTENT
    },
    CommandForm {
        names: &["column"],
        options: table(
            "tnxe",
            "csoNRl",
            "table",
            "separator output-separator table-columns table-right output-width",
        ),
        ..CONTENT
    },
    CommandForm {
        names: &["sort"],
        options: table(
            "bdfgiMhnRrVcCmsuz",
            "kt",
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort \
             human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique \
             zero-terminated debug",
            "key field-separator sort parallel",
        ),
        ..CONTENT
    },
    CommandForm {
        names: &["uniq"],
        options: table(
            "cdDiuz",
            "fsw",
            "count repeated all-repeated ignore-case unique zero-terminated group",
            "skip-fields skip-chars check-chars",
        ),
        n_operands_max: 1,
        ..CONTENT
    },
    CommandForm {
        names: &["diff"],
        options: table(
            "ucqsyibBwEZadNtT",
            "UC",
            "unified context brief report-identical-files side-by-side ignore-case ignore-blank-lines \
             ignore-space-change ignore-all-space ignore-trailing-space ignore-tab-expansion text minimal new-file \
             expand-tabs initial-tab color no-color suppress-common-lines strip-trailing-cr speed-large-files",
            "width label ignore-matching-lines",
        ),
        n_operands_max: 2,
        ..CONTENT
    },
    CommandForm {
        names: &["md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum"],
        options: table("btz", "", "binary text tag zero", ""),
        ..CONTENT
    },
    CommandForm { names: &["cksum"], ..CONTENT },
    CommandForm {
        names: &["wc"],
        options: table("clLmw", "", "bytes chars lines max-line-length words", "total"),
        globs: GlobPolicy::BelowFolder,
        ..NAMES
    },
    CommandForm {
        names: &["ls"],
        options: table(
            "1aAbBcCdDfFgGhHiklmnNopqQrRsStuUvxXZ",
            "ITw",
            "all almost-all author escape directory classify file-type full-time group-directories-first \
             human-readable si inode no-group numeric-uid-gid literal quote-name reverse recursive size zero color \
             hyperlink kibibytes ignore-backups hide-control-chars show-control-chars",
            "block-size format ignore hide quoting-style sort time time-style tabsize width indicator-style",
        ),
        globs: GlobPolicy::Any,
        ..NAMES
    },
    CommandForm {
        names: &["stat"],
        options: table("Lft", "c", "dereference file-system terse", "format printf"),
        globs: GlobPolicy::Any,
        ..NAMES
    },
    CommandForm {
        names: &["readlink"],
        options: table(
            "femnqsvz",
            "",
            "canonicalize canonicalize-existing canonicalize-missing no-newline zero",
            "",
        ),
        globs: GlobPolicy::Any,
        ..NAMES
    },
    CommandForm {
        names: &["realpath"],
        options: table(
            "emLPqsz",
            "",
            "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero",
            "relative-to relative-base",
        ),
        ..NAMES
    },
    CommandForm {
        names: &["du"],
        options: table(
            "abchHklmsSx0",
            "Bdt",
            "all apparent-size bytes total human-readable si summarize separate-dirs one-file-system null inodes",
            "block-size max-depth threshold exclude",
        ),
        globs: GlobPolicy::BelowFolder,
        ..NAMES
    },
    CommandForm {
        names: &["file"],
        options: table(
            "bhikNnr0",
            "",
            "brief mime mime-type mime-encoding no-dereference keep-going no-pad",
            "",
        ),
        ..NAMES
    },
    CommandForm {
        names: &["tree"],
        options: table(
            "adfiqNQpughDFsrtcUvnCAJ",
            "LPI",
            "dirsfirst filesfirst noreport prune gitignore matchdirs ignore-case si du",
            "sort filelimit timefmt charset",
        ),
        ..NAMES
    },
    CommandForm { names: &["true", "false", ":", "whoami", "arch"], ..NOTHING },
    CommandForm { names: &["pwd"], options: table("LP", "", "logical physical", ""), ..NOTHING },
    CommandForm {
        names: &["id"],
        options: table("gGnruz", "", "user group groups name real zero", ""),
        ..NOTHING
    },
    CommandForm { names: &["groups"], ..NOTHING },
    CommandForm {
        names: &["uname"],
        options: table(
            "asnrvmpio",
            "",
            "all kernel-name nodename kernel-release kernel-version machine processor operating-system",
            "",
        ),
        ..NOTHING
    },
    CommandForm { names: &["nproc"], options: table("", "", "all", "ignore"), ..NOTHING },
    CommandForm { names: &["uptime"], options: table("ps", "", "pretty since", ""), ..NOTHING },
    CommandForm {
        names: &["tr"],
        options: table("cCdst", "", "complement delete squeeze-repeats truncate-set1", ""),
        ..NOTHING
    },
    CommandForm { names: &["basename"], options: table("az", "s", "multiple zero", "suffix"), ..NOTHING },
    CommandForm { names: &["dirname"], options: table("z", "", "zero", ""), ..NOTHING },
    CommandForm { names: &["which"], options: table("a", "", "all", ""), ..NOTHING },
    CommandForm { names: &["type"], options: table("aftpP", "", "", ""), ..NOTHING },
    CommandForm {
        names: &["df"],
        options: table(
            "ahHiklPT",
            "Btx",
            "all human-readable si inodes local portability print-type total",
            "block-size type exclude-type output",
        ),
        ..NAMES
    },
    CommandForm {
        names: &["free"],
        options: table("bkmghltvw", "", "bytes kibi mebi gibi human lohi total wide", ""),
        n_operands_max: 0,
        ..NOTHING
    },
    CommandForm { names: &["seq"], options: table("w", "fs", "equal-width", "format separator"), ..NOTHING },
    CommandForm { names: &["exit", "break", "continue"], n_operands_max: 1, ..NOTHING },
    CommandForm { names: &["sleep"], ..NOTHING },
    CommandForm {
        names: &["hostname"],
        options: table("dfiIs", "", "domain fqdn short", ""),
        n_operands_max: 0,
        ..NOTHING
    },
];
