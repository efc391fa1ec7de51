//! Routine lines of builds, test runs and downloads, recognized by their format.

use super::line_prefix::{without_label, without_time};

/// Kind of a routine line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoiseKind {
    /// Finished step of a build or an installation.
    Build,
    /// Test started, passed or skipped.
    Test,
    /// Progress.
    Progress,
}

/// Classifies a line; `None` if it may matter.
pub(super) fn of(line: &str) -> Option<NoiseKind> {
    let line = without_time(line).trim_start();
    if line.trim().is_empty() {
        return None;
    }
    // A runner's label before an empty line.
    if line.ends_with(": ") && without_label(line) == Some("") {
        return Some(NoiseKind::Build);
    }
    let line = line.trim_end();
    of_plain(line).or_else(|| of_plain(without_label(line)?))
}

fn of_plain(line: &str) -> Option<NoiseKind> {
    let line = line.trim();
    if is_passed_test(line) {
        Some(NoiseKind::Test)
    } else if is_build_step(line) {
        Some(NoiseKind::Build)
    } else if is_progress(line) {
        Some(NoiseKind::Progress)
    } else {
        None
    }
}

/// Returns true if a line names the file whose tests follow: `core test: src/parse.test.ts:`.
pub(super) fn is_test_file(line: &str) -> bool {
    let Some(name) = line.trim_end().strip_suffix(':') else { return false };
    let name = name.rsplit(' ').next().unwrap_or(name);
    name.contains(['/', '.'])
        && [".test.", ".spec.", "_test.", "test_"].iter().any(|part| name.contains(part))
}

/// Returns true if a line summarizes a run.
pub(super) fn is_summary(line: &str) -> bool {
    let line = without_time(line).trim_start();
    let line = without_label(line).filter(|rest| starts_with_any(rest, &OPENS)).unwrap_or(line);
    const OPENS: [&str; 24] = [
        "test result:",
        "Summary [",
        "Finished",
        "Tests:",
        "Tests ",
        "Test Suites:",
        "Test Files",
        "BUILD ",
        "Successfully ",
        "added ",
        "Ran ",
        "# tests",
        "# pass",
        "# fail",
        "Tests run:",
        "[INFO] BUILD",
        "[INFO] Tests run:",
        "Done in",
        "Exit code",
        "exit code",
        "Process exited",
        "Doc-tests",
        "Snapshots:",
        "Time:",
    ];
    let bytes = line.as_bytes();
    starts_with_any(line, &OPENS)
        || is_commit(line)
        || (bytes.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'=')
            && [" passed", " passing", " failing", " pass", " pending", " skipped", " tests completed"]
                .iter()
                .any(|word| line.contains(word)))
}

/// `[main 1a2b3c4] Say why`: a commit that git has made; later commands refer to it.
fn is_commit(line: &str) -> bool {
    let named = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let hash = named.and_then(|(inside, _)| inside.rsplit_once(' ')).map(|(_, hash)| hash);
    hash.is_some_and(|hash| {
        (7..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Returns true if a command builds, tests or installs.
pub(super) fn is_hinted(command: &str) -> bool {
    const PROGRAMS: [&str; 30] = [
        "cargo", "npm", "npx", "yarn", "pnpm", "bun", "gradle", "gradlew", "mvn", "mvnw", "make", "cmake",
        "ninja", "go", "docker", "podman", "pip", "pip3", "uv", "poetry", "pytest", "jest", "vitest",
        "mocha", "apt-get", "apt", "brew", "mise", "just", "ctest",
    ];
    command
        .split(|character: char| character.is_whitespace() || "&|;()/\"'".contains(character))
        .any(|word| PROGRAMS.contains(&word))
}

fn starts_with_any(line: &str, openings: &[&str]) -> bool {
    // Comparing first letters avoids most calls; there are many lines and many openings.
    let first = line.as_bytes().first();
    openings.iter().any(|opening| opening.as_bytes().first() == first && line.starts_with(opening))
}

fn is_passed_test(line: &str) -> bool {
    const OPENS: [&str; 24] = [
        "✓ ",
        "✔ ",
        "√ ",
        "(pass) ",
        "(skip) ",
        "(todo) ",
        "PASS ",
        "PASS: ",
        "SKIP [",
        "START ",
        "=== RUN",
        "=== PAUSE",
        "=== CONT",
        "=== NAME",
        "--- PASS",
        "--- SKIP",
        "ok  \t",
        "?   \t",
        "# Subtest:",
        "duration_ms:",
        "running 0 tests",
        "test result: ok. 0 passed",
        "[INFO] Running ",
        "- skipped ",
    ];
    if line == "PASS" || starts_with_any(line, &OPENS) {
        return true;
    }
    if let Some(rest) = line.strip_prefix("test ") {
        return rest.ends_with("... ok") || rest.contains("... ignored") || rest.contains("... ok <");
    }
    if let Some(rest) = line.strip_prefix("ok ") {
        return rest.as_bytes().first().is_some_and(u8::is_ascii_digit);
    }
    is_passed_at_end(line)
}

fn is_passed_at_end(line: &str) -> bool {
    if line.ends_with(" PASSED") || line.ends_with(" SKIPPED") {
        return true;
    }
    if line.ends_with("%]") {
        let named = line.contains(" PASSED ") || line.contains(" SKIPPED ") || line.contains(" XFAIL ");
        let mut words = line.split_whitespace().skip(1);
        return named || words.next().is_some_and(|dots| dots.bytes().all(|byte| b".sxX".contains(&byte)));
    }
    if line.ends_with(" sec") {
        return line.contains(" Passed ");
    }
    (line.starts_with("Test Case ") && line.contains(" passed ("))
        || (line.starts_with("Passed ") && line.ends_with("ms]"))
        || (starts_with_any(line, &["[INFO] Tests run:", "Tests run:"])
            && line.contains("Failures: 0, Errors: 0")
            && line.contains("Time elapsed"))
}

fn is_build_step(line: &str) -> bool {
    const OPENS: [&str; 66] = [
        "Compiling ",
        "Checking ",
        "Downloaded ",
        "Downloading ",
        "Fresh ",
        "Documenting ",
        "Dirty ",
        "Unpacking ",
        "Locking ",
        "Adding ",
        "Updating ",
        "Blocking ",
        "Collecting ",
        "Requirement already satisfied",
        "Using cached ",
        "Obtaining ",
        "Preparing metadata",
        "Getting requirements",
        "Installing build dependencies",
        "Building wheel",
        "Created wheel",
        "Stored in directory",
        "Attempting uninstall",
        "Found existing installation",
        "Uninstalling ",
        "Successfully uninstalled",
        "npm http ",
        "npm sill ",
        "npm verb ",
        "npm timing ",
        "npm info ",
        "➤ YN00",
        "Progress: resolved",
        "> Task :",
        "Download http",
        "[INFO] Download",
        "Progress (",
        "go: downloading",
        "go: finding",
        "go: extracting",
        "-- Looking for",
        "-- Check",
        "-- Detecting",
        "-- Performing",
        "-- Found",
        "-- The ",
        "-- Installing:",
        "-- Up-to-date:",
        "libtool: ",
        "--->",
        "Removing intermediate container",
        "Get:",
        "Hit:",
        "Ign:",
        "Selecting previously",
        "Preparing to unpack",
        "Setting up ",
        "Processing triggers",
        "(Reading database",
        "sha256:",
        "extracting sha256",
        "transferring ",
        "CACHED",
        "DONE ",
        "Linking ",
        "Fetching ",
    ];
    if starts_with_any(line, &OPENS) {
        return !line.ends_with(" FAILED");
    }
    if let Some(rest) = line.strip_prefix("[INFO]") {
        let rest = rest.trim_start();
        return !starts_with_any(rest, &["BUILD", "Tests run", "Reactor Summary", "Total time", "Results"]);
    }
    is_step_of_many(line) || is_compiler_call(line) || is_layer(line) || is_artifact(line)
}

/// `[12/345] Building`, `[ 12%] Building`, `[stage 3/9] RUN`, `+ name==1.2`, `checking for x... yes`, `make[1]: …`.
fn is_step_of_many(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix('[') {
        let rest = rest.trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        return digits > 0 && (rest[digits..].starts_with('/') || rest[digits..].starts_with("%]"));
    }
    if let Some(rest) = line.strip_prefix("make[") {
        return ["Entering directory", "Leaving directory", "Nothing to be done"]
            .iter()
            .any(|words| rest.contains(words));
    }
    let is_package = starts_with_any(line, &["+ ", "~ "]) && line.contains("==") && !line[2..].contains(' ');
    is_package
        || (line.starts_with("checking ") && line.contains("... "))
        || (line.len() > 5 && line.bytes().all(|byte| byte == b'+'))
}

fn is_compiler_call(line: &str) -> bool {
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    const SHORT: [&str; 12] =
        ["CC", "LD", "AR", "CXX", "CCLD", "CXXLD", "AS", "HOSTCC", "GEN", "INSTALL", "OBJCOPY", "HOSTLD"];
    if SHORT.contains(&first) {
        return rest.starts_with(' ');
    }
    let name = first.rsplit(['/', '-']).next().unwrap_or(first);
    const COMPILERS: [&str; 10] =
        ["gcc", "g++", "cc", "c++", "clang", "clang++", "ar", "ranlib", "rustc", "javac"];
    COMPILERS.contains(&name) && (rest.contains("-c ") || rest.contains("-o ") || rest.contains("-d "))
}

/// A container image layer in progress: `a1b2c3d4e5f6: Pull complete`.
fn is_layer(line: &str) -> bool {
    let Some((id, state)) = line.split_once(": ") else { return false };
    const STATES: [&str; 11] = [
        "Pulling fs layer",
        "Waiting",
        "Verifying Checksum",
        "Download complete",
        "Pull complete",
        "Pushed",
        "Preparing",
        "Layer already exists",
        "Downloading",
        "Extracting",
        "Already exists",
    ];
    id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) && starts_with_any(state, &STATES)
}

/// A bundler's output file with its size, or a page with its time.
fn is_artifact(line: &str) -> bool {
    if line.ends_with("ms)") && line.contains("(+") {
        return true;
    }
    if !line.ends_with('B') {
        return false;
    }
    let line = line.strip_prefix('[').and_then(|line| line.split_once("] ")).map_or(line, |(_, rest)| rest);
    let mut words = line.split_whitespace();
    let has_path = words.next().is_some_and(|word| word.contains('/'));
    has_path
        && words.next().is_some_and(|word| word.as_bytes()[0].is_ascii_digit())
        && words.next().is_some_and(|word| matches!(word, "kB" | "KB" | "KiB" | "MB" | "MiB" | "B"))
}

fn is_progress(line: &str) -> bool {
    if line.starts_with(|character: char| ('\u{2800}'..='\u{28ff}').contains(&character)) {
        return true;
    }
    let bytes = line.as_bytes();
    if bytes.first().is_some_and(u8::is_ascii_digit) && line.contains(" .......... ") {
        return true;
    }
    let has_percent = memchr::memchr_iter(b'%', bytes).any(|at| at > 0 && bytes[at - 1].is_ascii_digit());
    if has_percent {
        const SIGNS: [&str; 13] = [
            "###",
            "===",
            "███",
            "▓▓▓",
            "░░░",
            "━━━",
            "...",
            "B/s",
            "ETA",
            "eta ",
            "objects:",
            "deltas:",
            "sec",
        ];
        return SIGNS.iter().any(|sign| line.contains(sign));
    }
    is_bar(bytes) || is_transfer_table(line)
}

/// `[=====>      ] 3/20`: brackets with nothing but a bar in them.
fn is_bar(bytes: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'[', bytes) else { return false };
    let bar = bytes[open + 1..].iter().take_while(|byte| b"=># -.".contains(byte)).count();
    bar >= 8 && bytes.get(open + 1 + bar) == Some(&b']')
}

/// A row of `curl`'s progress table: only figures and times.
fn is_transfer_table(line: &str) -> bool {
    let mut n_words = 0;
    let mut has_clock = false;
    for word in line.split_whitespace() {
        n_words += 1;
        has_clock |= word.contains(':');
        if !word.bytes().all(|byte| byte.is_ascii_digit() || b":-.kMG".contains(&byte)) {
            return false;
        }
    }
    n_words >= 10 && has_clock
}
