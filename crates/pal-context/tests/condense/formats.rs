//! Sample output of many programs: recognized format, and lines that stay or go.

use pal_context::{CondensedOutput, OutputOrigin, condense_output};

/// Target characters.
const TARGET_CHARACTERS: usize = 4_000;

/// One sample.
struct OutputSample {
    name: &'static str,
    command: Option<&'static str>,
    by: &'static str,
    text: String,
    /// Lines that must stay whole.
    stays: &'static [&'static str],
    /// Pieces that must be dropped.
    goes: &'static [&'static str],
}

/// Repeats a line with ascending numbers.
fn many(count: usize, line: &str) -> String {
    (0..count).map(|number| line.replace("{}", &number.to_string()) + "\n").collect()
}

fn check(sample: &OutputSample) -> CondensedOutput {
    let asked = OutputOrigin { tool: "Bash", command: sample.command };
    let Some(condensed) = condense_output(asked, &sample.text, TARGET_CHARACTERS) else {
        panic!("{}: not condensed, {} characters", sample.name, sample.text.len())
    };
    assert_eq!(condensed.format.name(), sample.by, "{}", sample.name);
    let lines: Vec<&str> = condensed.text.lines().collect();
    for line in sample.stays {
        assert!(lines.contains(line), "{}: {line:?} is missing from\n{}", sample.name, condensed.text);
    }
    for piece in sample.goes {
        assert!(
            !condensed.text.contains(piece),
            "{}: {piece:?} is still in\n{}",
            sample.name,
            condensed.text
        );
    }
    crate::laws::check_laws(asked, &sample.text, TARGET_CHARACTERS);
    condensed
}

#[test]
fn builds() {
    let samples = [
        OutputSample {
            name: "cargo",
            command: Some("cargo build"),
            by: "build log",
            text: many(120, "   Compiling crate-{} v1.{}.0")
                + "warning: unused variable: `count`\n  --> src/view.rs:14:9\n   |\n14 |     let count = 3;\n   |         ^^^^^ help: prefix it\n\n"
                + &many(60, "   Compiling other-{} v0.{}.1")
                + "error[E0308]: mismatched types\n   --> src/main.rs:20:18\n    |\n20 |     let x: u8 = \"\";\n    |                 ^^ expected `u8`, found `&str`\n\nerror: could not compile `app` (bin \"app\") due to 1 previous error; 1 warning emitted\n",
            stays: &[
                "warning: unused variable: `count`",
                "  --> src/view.rs:14:9",
                "error[E0308]: mismatched types",
                "   --> src/main.rs:20:18",
                "20 |     let x: u8 = \"\";",
                "error: could not compile `app` (bin \"app\") due to 1 previous error; 1 warning emitted",
            ],
            goes: &["crate-50 ", "other-20 "],
        },
        OutputSample {
            name: "npm",
            command: Some("npm ci --loglevel http"),
            by: "build log",
            text: many(90, "npm http fetch GET 200 https://registry.example/package-{} 120ms (cache miss)")
                + "npm warn deprecated rimraf@3.0.2: versions before 4 are no longer supported\n"
                + &many(20, "npm http fetch GET 200 https://registry.example/late-{} 80ms (cache hit)")
                + "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\n\nadded 412 packages in 9s\n",
            stays: &[
                "npm warn deprecated rimraf@3.0.2: versions before 4 are no longer supported",
                "npm error code ERESOLVE",
                "added 412 packages in 9s",
            ],
            goes: &["package-40 ", "late-10 "],
        },
        OutputSample {
            name: "yarn",
            command: Some("yarn install"),
            by: "build log",
            text: many(
                80,
                "➤ YN0013: │ left-part@npm:1.{}.0 can't be found in the cache and will be fetched",
            ) + "➤ YN0028: │ The lockfile would have been modified, error in strict mode\n➤ YN0000: · Failed with errors in 3s 12ms\n",
            stays: &["➤ YN0000: · Failed with errors in 3s 12ms"],
            goes: &["1.40.0"],
        },
        OutputSample {
            name: "gradle",
            command: Some("./gradlew build"),
            by: "build log",
            text: many(90, "> Task :module{}:compileJava UP-TO-DATE")
                + "> Task :app:compileJava FAILED\n/src/App.java:12: error: cannot find symbol\n        foo();\n        ^\n  symbol:   method foo()\n1 error\n\nFAILURE: Build failed with an exception.\n\nBUILD FAILED in 12s\n",
            stays: &[
                "> Task :app:compileJava FAILED",
                "/src/App.java:12: error: cannot find symbol",
                "  symbol:   method foo()",
                "BUILD FAILED in 12s",
            ],
            goes: &["module50:"],
        },
        OutputSample {
            name: "maven",
            command: Some("mvn -B verify"),
            by: "build log",
            text: many(60, "[INFO] Downloading from central: https://repo.example/maven2/part-{}.pom")
                + "[WARNING] The POM for a:b:jar:1 is missing\n[ERROR] /src/Main.java:[10,5] ';' expected\n[INFO] BUILD FAILURE\n[INFO] Total time:  3.2 s\n[ERROR] Failed to execute goal compile\n",
            stays: &[
                "[WARNING] The POM for a:b:jar:1 is missing",
                "[ERROR] /src/Main.java:[10,5] ';' expected",
                "[INFO] BUILD FAILURE",
            ],
            goes: &["part-30."],
        },
        OutputSample {
            name: "cmake and make",
            command: Some("cmake --build ."),
            by: "build log",
            text: many(60, "-- Looking for function_{} - found")
                + &many(90, "[ 12%] Building CXX object src/CMakeFiles/part.dir/file{}.cpp.o")
                + "/src/file90.cpp:7:3: error: use of undeclared identifier 'x'\n  x = 1;\n  ^\nmake[2]: *** [src/file90.cpp.o] Error 1\nmake: *** [all] Error 2\n",
            stays: &[
                "/src/file90.cpp:7:3: error: use of undeclared identifier 'x'",
                "  x = 1;",
                "make[2]: *** [src/file90.cpp.o] Error 1",
            ],
            goes: &["function_30 ", "file40."],
        },
        OutputSample {
            name: "make with compiler calls",
            command: Some("make -j8"),
            by: "build log",
            text: many(60, "gcc -O2 -Wall -Iinclude -c -o build/part{}.o src/part{}.c")
                + "src/part9.c: In function 'main':\nsrc/part9.c:12:7: warning: unused variable 'n' [-Wunused-variable]\n"
                + &many(10, "cc -c -o build/more{}.o src/more{}.c")
                + "gcc -o app build/part1.o\n",
            stays: &["src/part9.c:12:7: warning: unused variable 'n' [-Wunused-variable]"],
            goes: &["part30."],
        },
        OutputSample {
            name: "go build",
            command: Some("go build ./..."),
            by: "build log",
            text: many(60, "go: downloading example.org/module/part{} v1.2.{}")
                + "# example.org/app\n./main.go:12:2: undefined: handler\n./main.go:15:9: too many arguments in call to run\n",
            stays: &[
                "# example.org/app",
                "./main.go:12:2: undefined: handler",
                "./main.go:15:9: too many arguments in call to run",
            ],
            goes: &["part30 "],
        },
        OutputSample {
            name: "docker build",
            command: Some("docker build ."),
            by: "build log",
            text: many(40, "#5 sha256:{}a1b2c3d4 1.05MB / 29.13MB 0.{}s")
                + &many(40, "#9 0.{} Get:{} http://archive.example/debian stable/main part{} 12 kB")
                + "#9 12.4 E: Unable to locate package nothing\n#9 ERROR: process \"/bin/sh -c apt-get install nothing\" did not complete successfully: exit code: 100\n------\nERROR: failed to solve: exit code: 100\n",
            stays: &[
                "#9 12.4 E: Unable to locate package nothing",
                "#9 ERROR: process \"/bin/sh -c apt-get install nothing\" did not complete successfully: exit code: 100",
            ],
            goes: &["sha256:20a1", "part20 "],
        },
        OutputSample {
            name: "pip",
            command: Some("pip install -r requirements.txt"),
            by: "build log",
            text: many(60, "Collecting part{}>=1.0\n  Downloading part{}-1.0-py3-none-any.whl (12 kB)")
                + "ERROR: Could not find a version that satisfies the requirement nothing==9\nERROR: No matching distribution found for nothing==9\n",
            stays: &["ERROR: No matching distribution found for nothing==9"],
            goes: &["part30-"],
        },
        OutputSample {
            name: "uv",
            command: Some("uv sync"),
            by: "build log",
            text: String::from("Resolved 120 packages in 12ms\n")
                + &many(150, " + part-{}==1.{}.0")
                + "warning: the lock file is old\n",
            stays: &["Resolved 120 packages in 12ms", "warning: the lock file is old"],
            goes: &["part-70="],
        },
    ];
    samples.iter().for_each(|sample| drop(check(sample)));
}

#[test]
fn test_runs() {
    let samples = [
        OutputSample {
            name: "cargo test",
            command: Some("cargo test"),
            by: "test run",
            text: String::from("running 91 tests\n")
                + &many(90, "test parser::tests::reads_case_{} ... ok")
                + "test parser::tests::reads_empty ... FAILED\n\nfailures:\n\n---- parser::tests::reads_empty stdout ----\n\nthread 'parser::tests::reads_empty' panicked at src/parser.rs:88:9:\nassertion `left == right` failed: nothing is nothing\n  left: 1\n right: 0\n\n\nfailures:\n    parser::tests::reads_empty\n\ntest result: FAILED. 90 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n",
            stays: &[
                "test parser::tests::reads_empty ... FAILED",
                "---- parser::tests::reads_empty stdout ----",
                "thread 'parser::tests::reads_empty' panicked at src/parser.rs:88:9:",
                "assertion `left == right` failed: nothing is nothing",
                "  left: 1",
                " right: 0",
                "    parser::tests::reads_empty",
                "test result: FAILED. 90 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            ],
            goes: &["reads_case_50 "],
        },
        OutputSample {
            name: "nextest",
            command: Some("cargo nextest run"),
            by: "test run",
            text: many(80, "        PASS [   0.00{}s] app parser::reads_case")
                + "        FAIL [   0.012s] app parser::reads_empty\n  stderr ───\n\n    thread 'parser::reads_empty' panicked at src/parser.rs:9:5:\n    nothing to read\n────────────\n     Summary [   0.213s] 81 tests run: 80 passed, 1 failed, 0 skipped\n",
            stays: &[
                "        FAIL [   0.012s] app parser::reads_empty",
                "    nothing to read",
                "     Summary [   0.213s] 81 tests run: 80 passed, 1 failed, 0 skipped",
            ],
            goes: &["0.0040s"],
        },
        OutputSample {
            name: "pytest",
            command: Some("pytest -v"),
            by: "test run",
            text: String::from(
                "============================= test session starts ==============================\n",
            ) + &many(
                70,
                "tests/test_store.py::test_case_{} PASSED                              [ 50%]",
            ) + "tests/test_store.py::test_empty FAILED                               [100%]\n\n=================================== FAILURES ===================================\n__________________________________ test_empty __________________________________\n\n    def test_empty():\n>       assert load('') == {}\nE       AssertionError: assert None == {}\n\ntests/test_store.py:41: AssertionError\n=========================== short test summary info ============================\nFAILED tests/test_store.py::test_empty - AssertionError: assert None == {}\n========================= 1 failed, 70 passed in 0.32s =========================\n",
            stays: &[
                "__________________________________ test_empty __________________________________",
                ">       assert load('') == {}",
                "E       AssertionError: assert None == {}",
                "tests/test_store.py:41: AssertionError",
                "FAILED tests/test_store.py::test_empty - AssertionError: assert None == {}",
                "========================= 1 failed, 70 passed in 0.32s =========================",
            ],
            goes: &["test_case_30 "],
        },
        OutputSample {
            name: "jest",
            command: Some("npx jest"),
            by: "test run",
            text: many(60, "PASS src/parts/part{}.test.ts")
                + "FAIL src/store.test.ts\n  ● store › loads nothing\n\n    expect(received).toEqual(expected) // deep equality\n\n    Expected: {}\n    Received: null\n\n      at Object.<anonymous> (src/store.test.ts:12:20)\n\n"
                + &many(40, "    ✓ does thing {} (3 ms)")
                + "Test Suites: 1 failed, 60 passed, 61 total\nTests:       1 failed, 400 passed, 401 total\n",
            stays: &[
                "FAIL src/store.test.ts",
                "  ● store › loads nothing",
                "    Expected: {}",
                "    Received: null",
                "      at Object.<anonymous> (src/store.test.ts:12:20)",
                "Tests:       1 failed, 400 passed, 401 total",
            ],
            goes: &["part30.", "thing 20 "],
        },
        OutputSample {
            name: "vitest",
            command: Some("vitest run"),
            by: "test run",
            text: many(70, " ✓ src/parts/part{}.test.ts (12 tests) 30ms")
                + " ❯ src/store.test.ts (2 tests | 1 failed) 12ms\n   × store > loads nothing 4ms\n     → expected null to deeply equal {}\n\n FAIL  src/store.test.ts > store > loads nothing\nAssertionError: expected null to deeply equal {}\n ❯ src/store.test.ts:12:20\n\n Test Files  1 failed | 70 passed (71)\n",
            stays: &[
                "   × store > loads nothing 4ms",
                "     → expected null to deeply equal {}",
                "AssertionError: expected null to deeply equal {}",
                " ❯ src/store.test.ts:12:20",
                " Test Files  1 failed | 70 passed (71)",
            ],
            goes: &["part30."],
        },
        OutputSample {
            name: "bun, many packages",
            command: Some("bun run test"),
            by: "test run",
            text: many(
                20,
                "@scope/core test: test/part{}.test.ts:\n@scope/core test: (pass) part > does {} [1.00ms]\n@scope/core test: ",
            ) + "@scope/core test: test/store.test.ts:\n@scope/core test: (pass) store > saves [2.00ms]\n@scope/core test: error: expect(received).toBe(expected)\n@scope/core test: (fail) store > loads [3.00ms]\n@scope/core test:  20 pass\n@scope/core test:  1 fail\n",
            stays: &[
                "@scope/core test: test/store.test.ts:",
                "@scope/core test: error: expect(received).toBe(expected)",
                "@scope/core test: (fail) store > loads [3.00ms]",
                "@scope/core test:  1 fail",
            ],
            goes: &["does 10 "],
        },
        OutputSample {
            name: "go test",
            command: Some("go test -v ./..."),
            by: "test run",
            text: many(50, "=== RUN   TestCase{}\n--- PASS: TestCase{} (0.00s)")
                + "=== RUN   TestEmpty\n    store_test.go:31: got nil, want an empty map\n--- FAIL: TestEmpty (0.00s)\n"
                + &many(10, "=== RUN   TestLate{}\n--- PASS: TestLate{} (0.00s)")
                + "FAIL\nFAIL\texample.org/app/store\t0.012s\nok  \texample.org/app/view\t0.004s\nFAIL\n",
            stays: &[
                "    store_test.go:31: got nil, want an empty map",
                "--- FAIL: TestEmpty (0.00s)",
                "FAIL\texample.org/app/store\t0.012s",
            ],
            goes: &["TestCase30", "TestLate5"],
        },
        OutputSample {
            name: "mocha",
            command: Some("npx mocha"),
            by: "test run",
            text: many(90, "    ✔ reads the number {} as it is")
                + "    1) loads nothing\n\n  90 passing (30ms)\n  1 failing\n\n  1) store\n       loads nothing:\n\n      AssertionError [ERR_ASSERTION]: null == {}\n      + expected - actual\n\n      -null\n      +{}\n\n      at Context.<anonymous> (test/store.js:9:12)\n",
            stays: &[
                "    1) loads nothing",
                "  90 passing (30ms)",
                "  1 failing",
                "      AssertionError [ERR_ASSERTION]: null == {}",
                "      -null",
                "      +{}",
                "      at Context.<anonymous> (test/store.js:9:12)",
            ],
            goes: &["number 50 "],
        },
        OutputSample {
            name: "junit by gradle",
            command: Some("gradle test"),
            by: "test run",
            text: many(70, "StoreTest > readsCase{}() PASSED")
                + "StoreTest > readsNothing() FAILED\n    org.opentest4j.AssertionFailedError: expected: <0> but was: <1>\n        at app//StoreTest.readsNothing(StoreTest.java:20)\n\n71 tests completed, 1 failed\n",
            stays: &[
                "StoreTest > readsNothing() FAILED",
                "    org.opentest4j.AssertionFailedError: expected: <0> but was: <1>",
                "        at app//StoreTest.readsNothing(StoreTest.java:20)",
                "71 tests completed, 1 failed",
            ],
            goes: &["readsCase30"],
        },
        OutputSample {
            name: "TAP",
            command: Some("node --test --test-reporter tap"),
            by: "test run",
            text: String::from("TAP version 13\n")
                + &many(70, "ok {} - reads the number {} as it is")
                + "not ok 71 - loads nothing\n  ---\n  failureType: 'testCodeFailure'\n  error: 'Expected null to be an object'\n  ...\n1..71\n# tests 71\n# pass 70\n# fail 1\n",
            stays: &["not ok 71 - loads nothing", "  error: 'Expected null to be an object'", "# fail 1"],
            goes: &["ok 30 "],
        },
    ];
    samples.iter().for_each(|sample| drop(check(sample)));
}

#[test]
fn progress() {
    let redrawn: String =
        (0..200).map(|percent| format!("\r\u{1b}[2KReceiving objects: {percent}% (1/9)")).collect();
    let samples = [
        OutputSample {
            name: "redraws",
            command: Some("git clone x"),
            by: "terminal redraws",
            text: String::from("Cloning into 'x'...\n") + &redrawn + "\r\nfatal: early EOF\n",
            stays: &["Cloning into 'x'...", "Receiving objects: 199% (1/9)", "fatal: early EOF"],
            goes: &["\u{1b}", " 100%", "\r"],
        },
        OutputSample {
            name: "bars on lines of their own",
            command: Some("./fetch"),
            by: "progress",
            text: many(60, "part.tar  {}% 12.1MB of 99MB at 12.1MB/s eta 3s")
                + &many(20, "check  [=====>          ] {}/20")
                + "saved part.tar\nchecksum is right\ndone\n",
            stays: &["saved part.tar", "done"],
            goes: &["  40%"],
        },
    ];
    samples.iter().for_each(|sample| drop(check(sample)));
}

#[test]
fn redraw_only_output_is_marked() {
    let text = "\u{1b}[2K\u{1b}[1A".repeat(500);
    let condensed =
        condense_output(OutputOrigin { tool: "Bash", command: Some("./spin") }, &text, TARGET_CHARACTERS)
            .unwrap();
    assert_eq!(condensed.text, "[… nothing but terminal control sequences …]");
}

#[test]
fn listings() {
    let folder = |number: usize| {
        format!("./part{number}:\ntotal 90\n")
            + &many(90, "-rw-r--r--  1 me me  120 Nov 16 09:00 file_{}.rs")
            + "\n"
    };
    let samples = [
        OutputSample {
            name: "ls -lR",
            command: Some("ls -lR"),
            by: "listing",
            text: (0..9).map(folder).collect(),
            stays: &["./part0:", "./part5:", "./part8:"],
            goes: &["file_60."],
        },
        OutputSample {
            name: "find",
            command: Some("find . -type f"),
            by: "listing",
            text: (0..9).map(|part| many(90, &format!("./src/part{part}/file_{{}}.rs"))).collect::<String>()
                + "find: './secret': Permission denied\n./last/one.rs\n./last/two.rs\n./last/three.rs\n./last/four.rs\n",
            stays: &["./src/part4/file_0.rs", "find: './secret': Permission denied", "./last/four.rs"],
            goes: &["file_60."],
        },
        OutputSample {
            name: "tree",
            command: Some("tree"),
            by: "listing",
            text: String::from(".\n")
                + &(0..9)
                    .map(|part| format!("├── part{part}\n") + &many(120, "│   ├── file_{}.rs"))
                    .collect::<String>()
                + "\n9 directories, 1080 files\n",
            stays: &["├── part5", "9 directories, 1080 files"],
            goes: &["file_90."],
        },
        OutputSample {
            name: "grep",
            command: Some("rg -n error"),
            by: "listing",
            text: (0..4)
                .map(|part| {
                    many(90, &format!("src/part{part}.rs:{{}}:    return Err(Error::new(\"error {{}}\"));"))
                })
                .collect(),
            stays: &["src/part2.rs:0:    return Err(Error::new(\"error 0\"));"],
            goes: &["error 70\""],
        },
    ];
    samples.iter().for_each(|sample| drop(check(sample)));
}

#[test]
fn json() {
    let items: Vec<String> = (0..300)
        .map(|number| {
            let state = if number == 200 { "failed" } else { "ok" };
            format!("{{\"id\": {number}, \"state\": \"{state}\", \"log\": \"{}\"}}", "word ".repeat(20))
        })
        .collect();
    let json = format!(
        "{{\"total\": 300, \"big\": 12345678901234567890123, \"items\": [{}], \"next\": null}}",
        items.join(", ")
    );
    let sample = OutputSample {
        name: "one object",
        command: Some("curl x"),
        by: "json",
        text: format!("Output:\n{json}\nexit 0\n"),
        stays: &[
            "Output:",
            " \"total\": 300",
            " \"big\": 12345678901234567890123",
            " \"next\": null",
            "   \"id\": 200",
            "exit 0",
        ],
        goes: &["\"id\": 250"],
    };
    let condensed = check(&sample);
    assert!(
        serde_json::from_str::<serde_json::Value>(&condensed.text).is_err(),
        "it cannot be taken for JSON"
    );
    let left_out = |text: &str| {
        let counts = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("[… ")?.strip_suffix(" items left out …]"));
        counts.map(|count| count.parse::<usize>().unwrap()).sum::<usize>()
    };
    let shown = condensed.text.matches("\"id\": ").count();
    assert_eq!(left_out(&condensed.text) + shown, 300, "items are shown or counted");
    let lines: String = items.iter().map(|item| format!("{item}\n")).collect();
    let asked = OutputOrigin { tool: "Bash", command: Some("./events") };
    assert_eq!(
        condense_output(asked, &lines, TARGET_CHARACTERS).map(|found| found.format.name()),
        Some("json"),
        "one value a line"
    );
}

#[test]
fn diffs() {
    let hunk = |name: &str| {
        let context = |from: usize| {
            (from..from + 40).map(|number| format!(" line {number} of {name}\n")).collect::<String>()
        };
        format!(
            "diff --git a/{name} b/{name}\nindex 1111111..2222222 100644\n--- a/{name}\n+++ b/{name}\n@@ -1,81 +1,81 @@ fn run()\n{}-old line of {name}\n+new line of {name}\n{}",
            context(0),
            context(40)
        )
    };
    let sample = OutputSample {
        name: "context goes first",
        command: Some("git diff"),
        by: "diff",
        text: (0..10).map(|number| hunk(&format!("src/part{number}.rs"))).collect(),
        stays: &[
            "diff --git a/src/part5.rs b/src/part5.rs",
            "@@ -1,81 +1,81 @@ fn run()",
            "-old line of src/part5.rs",
            "+new line of src/part5.rs",
            " line 39 of src/part5.rs",
        ],
        goes: &[" line 10 of src/part5.rs"],
    };
    check(&sample);
    let lock = String::from(
        "diff --git a/Cargo.lock b/Cargo.lock\nindex 1..2 100644\n--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -1,60 +1,60 @@\n",
    ) + &many(60, "-version = \"1.0.{}\"")
        + &many(60, "+version = \"1.1.{}\"");
    let sample = OutputSample {
        name: "lock files are counted",
        command: Some("git diff"),
        by: "diff",
        text: lock + &hunk("src/lib.rs").replace(" of src/lib.rs", ""),
        stays: &[
            "diff --git a/Cargo.lock b/Cargo.lock",
            "[… 121 lines left out, among them 60 added lines, 60 removed lines …]",
            "-old line",
            " line 3",
        ],
        goes: &["1.0.30"],
    };
    check(&sample);
}

#[test]
fn logs_of_any_program() {
    let text = many(400, "the worker has taken job {} from the queue")
        + "ERROR job 17 was lost: the queue is closed\n  at queue.take (queue.js:10:3)\n"
        + &many(400, "the worker waits for the queue, try {}");
    let sample = OutputSample {
        name: "a program",
        command: Some("./work"),
        by: "log",
        text: text.clone(),
        stays: &[
            "the worker has taken job 0 from the queue",
            "ERROR job 17 was lost: the queue is closed",
            "  at queue.take (queue.js:10:3)",
            "the worker waits for the queue, try 399",
        ],
        goes: &["job 250 "],
    };
    check(&sample);
    let asked = |tool, command| OutputOrigin { tool, command };
    assert_eq!(
        condense_output(asked("Task", None), &text, TARGET_CHARACTERS),
        None,
        "what came without a command may be prose"
    );
    let manual = many(9, "## Chapter {}\n") + &text;
    assert_eq!(
        condense_output(asked("Bash", Some("tool help")), &manual, TARGET_CHARACTERS),
        None,
        "a manual is no log"
    );
    let short: String = text.chars().take(3_900).collect();
    assert_eq!(
        condense_output(asked("Bash", Some("./work")), &short, TARGET_CHARACTERS),
        None,
        "what fits and is not known stays"
    );
}

#[test]
fn git_commit_line_stays() {
    let text = many(200, "check {} of the hook has passed without a word")
        + "[main c653b3c] Skip what is not there\n"
        + &many(200, "packing object {} for the journey");
    let sample = OutputSample {
        name: "a commit with hooks",
        command: Some("git commit -m x && git gc"),
        by: "log",
        text,
        stays: &["[main c653b3c] Skip what is not there", "packing object 199 for the journey"],
        goes: &["check 150 "],
    };
    check(&sample);
}

#[test]
fn equal_lines_are_counted() {
    let text = many(30, "   Compiling crate-{} v1.0.0")
        + &many(200, "note: still waiting for the lock")
        + "warning: the cache is old\nwarning: the cache is old\nwarning: the cache is old\nwarning: the cache is old\nwarning: the cache is old\ndone\n";
    let sample = OutputSample {
        name: "equal lines",
        command: Some("cargo build"),
        by: "build log",
        text,
        stays: &[
            "note: still waiting for the lock",
            "[… the line above came 199 more times …]",
            "warning: the cache is old",
            "[… the line above came 4 more times …]",
        ],
        goes: &["crate-15 "],
    };
    check(&sample);
}

#[test]
fn go_test_output_before_the_failure_stays() {
    let talk = |from: usize| {
        (from..from + 200)
            .map(|number| format!("worker {} wrote {number} words", "abc".repeat(number % 7)))
            .collect::<Vec<_>>()
            .join("\n")
            + "\n"
    };
    let text = many(60, "=== RUN   TestCase{}\n--- PASS: TestCase{} (0.00s)")
        + &talk(0)
        + "=== RUN   TestEmpty\n    store_test.go:31: the stores differ\n        stored:   []\n        loaded:   nil\n        checked:  twice\n        by whom:  the checker\n--- FAIL: TestEmpty (0.00s)\n"
        + &many(60, "=== RUN   TestLate{}\n--- PASS: TestLate{} (0.00s)")
        + &talk(200)
        + "FAIL\texample.org/app/store\t0.012s\nFAIL\n";
    let sample = OutputSample {
        name: "go, a long message",
        command: Some("go test -v ./..."),
        by: "test run",
        text,
        stays: &[
            "    store_test.go:31: the stores differ",
            "        stored:   []",
            "        loaded:   nil",
            "--- FAIL: TestEmpty (0.00s)",
        ],
        goes: &["wrote 150 words"],
    };
    check(&sample);
}

#[test]
fn more_errors_than_fit_are_counted_by_kind() {
    let text = many(200, "   Compiling crate-{} v1.0.0")
        + &many(900, "error[E0425]: cannot find value `value_{}` in this scope\n  --> src/part.rs:{}:5")
        + &many(300, "warning: unused variable `value_{}`\n  --> src/part.rs:{}:9")
        + "error: could not compile `app` due to 900 previous errors\n";
    let sample = OutputSample {
        name: "many errors",
        command: Some("cargo build"),
        by: "build log",
        text,
        stays: &[
            "error[E0425]: cannot find value `value_0` in this scope",
            "  --> src/part.rs:0:5",
            "error[E0425]: cannot find value `value_899` in this scope",
            "error: could not compile `app` due to 900 previous errors",
        ],
        goes: &["value_500`"],
    };
    let condensed = check(&sample);
    let shown = condensed.text.matches("error[E0425]").count() as u64;
    let gap = condensed.text.lines().find(|line| line.contains(" errors")).expect("a count of errors");
    let words: Vec<&str> = gap.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("errors")).unwrap();
    assert_eq!(words[at - 1].parse::<u64>().unwrap() + shown, 900, "{gap}");
    assert!(condensed.text.chars().count() < TARGET_CHARACTERS + 200);
    assert!(condensed.text.contains(" warnings"), "warnings are counted, too");
}

#[test]
fn very_long_line_is_cut_in_the_middle() {
    let text = format!("start{}end", "x".repeat(50_000));
    let condensed =
        condense_output(OutputOrigin { tool: "Bash", command: Some("./print") }, &text, TARGET_CHARACTERS)
            .unwrap();
    assert!(condensed.text.starts_with("startxxx") && condensed.text.ends_with("xxxend"));
    assert!(condensed.text.contains(" characters left out …]"));
}
