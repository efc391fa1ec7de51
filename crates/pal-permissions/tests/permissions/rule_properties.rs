//! Properties that hold for any command.

use pal_permissions::{PermissionMode, PermissionRule, Verdict, is_read_only};
use proptest::prelude::*;

use crate::{rules, run};

const RULES: &str = "
    allow Bash(git status:*)
    allow Bash(cargo test:*)
    allow Bash(echo:*)
    allow Edit(src/**)
    deny Bash(rm:*)
    deny Read(.env)
";

/// Pieces of command lines, harmless and not.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "git status",
        "cargo test",
        "ls",
        "cat",
        "echo",
        "make",
        "rm x",
        "cd src",
        "cd ..",
        "eval",
        "x",
        ".env",
        "src/a",
        "/etc/x",
        "$x",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        ">",
        ">>",
        "<",
        "<<EOF",
        "<<'EOF'",
        "\nEOF\n",
        "<<<",
        "<(",
        "{",
        "}",
        "(",
        "((",
        "))",
        "[[",
        "]]",
        "[",
        "]",
        "if",
        "then",
        "fi",
        "for x in",
        "do",
        "done",
        "while",
        "case x in",
        "esac",
        "function f",
        "f()",
        "#",
        "=",
        "A=1",
        "x=1",
        "*",
        "?",
        "~",
        "!",
        "-c",
        "--",
        "-exec",
        "timeout 5",
        "time",
        "env",
        "sudo",
        "xargs",
        "\u{200b}",
        "é",
        "\r",
        "\t",
        " ",
        "${x}",
        "${x:-",
        "$((1+2))",
        "2>&1",
        "> /dev/null",
        "git log",
        "find .",
        "sed -n 1p",
        "test -f",
    ]);
    prop_oneof![8 => known.prop_map(String::from), 1 => ".{0,3}"]
}

fn line() -> impl Strategy<Value = String> {
    prop::collection::vec((piece(), prop::sample::select(vec![" ", " ", " ", ""])), 0..9).prop_map(|pieces| {
        pieces.into_iter().flat_map(|(piece, space)| [piece, String::from(space)]).collect()
    })
}

/// Line that is likely to be allowed.
fn likely() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "git status",
        "cargo test -q",
        "ls src",
        "cat README.md",
        "echo a",
        "echo \"$x\"",
        "cd src",
        "git log -1",
        "find . -name 'a*'",
        "x=1",
        "echo $(pwd)",
        "(ls; pwd)",
        "{ ls; }",
        "if ls; then pwd; fi",
        "for x in a b; do echo $x; done",
        "! ls",
        "echo x > src/y",
        "cat < src/y",
        "[ -f x ]",
        "rg a src",
        "ls 2>&1",
        "timeout 5 ls",
        "cat <(ls)",
        "cat <<< x",
    ]);
    let signs = prop::sample::select(vec!["; ", " && ", " || ", " | ", "\n", " & "]);
    let many = prop::collection::vec((known, signs), 0..4);
    many.prop_map(|parts| parts.iter().map(|(part, sign)| format!("{part}{sign}")).collect::<String>() + "ls")
}

/// Command that nothing allows.
fn refused() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "make",
        "rm x",
        "cat /etc/passwd",
        "cat .env",
        "eval ls",
        "sudo ls",
        "echo x > /etc/y",
        "$x",
        "X=1 make",
        "git push",
        "cd /etc",
    ])
}

fn joined(left: &str, right: &str) -> Vec<String> {
    let simple = [";", " && ", " || ", " | ", "\n", " & ", " |& "].map(|sign| format!("{left}{sign}{right}"));
    let around = [
        format!("{left} $({right})"),
        format!("{left} \"$({right})\""),
        format!("({left}; {right})"),
        format!("{left} <({right})"),
    ];
    simple.into_iter().chain(around).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_panics(text in ".{0,80}", pieces in line()) {
        let rules = rules(RULES);
        for command in [text, pieces] {
            for mode in PermissionMode::ALL {
                run(&command, mode, &rules);
            }
            is_read_only(&command);
            let _ = command.parse::<PermissionRule>();
            let _ = format!("Bash({command})").parse::<PermissionRule>();
            let _ = format!("Read({command})").parse::<PermissionRule>();
        }
    }

    /// A command that is not allowed stays so in any surrounding line.
    #[test]
    fn adding_an_allowed_line_allows_nothing(line in prop_oneof![line(), likely()], refused in refused()) {
        let rules = rules(RULES);
        prop_assume!(run(&line, PermissionMode::Default, &rules) == Verdict::Allow);
        // An unfinished line swallows what follows; in a comment it does not run.
        prop_assume!(!line.contains('#') && !line.contains("EOF") && !line.contains('\\'));
        for command in joined(&line, refused).into_iter().chain(joined(refused, &line)) {
            prop_assert_ne!(run(&command, PermissionMode::Default, &rules), Verdict::Allow, "{:?}", command);
        }
    }

    /// Adding parts never allows a line.
    #[test]
    fn adding_parts_allows_nothing(line in line(), more in line()) {
        let rules = rules(RULES);
        prop_assume!(run(&line, PermissionMode::AcceptEdits, &rules) != Verdict::Allow);
        // An unfinished construct would change its meaning with what follows.
        let begins = ["if", "then", "for", "do", "while", "case", "function", "<<", "!", "EOF"];
        prop_assume!(!line.contains(['\'', '"', '`', '\\', '#', '(', '{', '[']) && !line.trim().is_empty());
        prop_assume!(!begins.iter().any(|word| line.contains(word)) && !line.trim_start().starts_with([';', '&', '|']));
        prop_assume!(!line.trim_end().ends_with(['&', '|']));
        for sign in [";", " && ", " || ", " | ", "\n"] {
            let command = format!("ls{sign}{line}{sign}{more}");
            let is_whole = !more.contains(['\'', '"', '`', '\\', '#', '(', ')', '{', '}', '[', ']']);
            if is_whole {
                prop_assert_ne!(run(&command, PermissionMode::AcceptEdits, &rules), Verdict::Allow, "{:?}", command);
            }
        }
    }

    /// Adding the suggested rule of every ask allows the command.
    #[test]
    fn the_suggested_rule_allows_the_command(line in line()) {
        // As a rule that matches everything.
        prop_assume!(line.trim() != "*");
        let mut rules = rules(RULES);
        for _ in 0..12 {
            match run(&line, PermissionMode::Default, &rules) {
                Verdict::Allow | Verdict::Deny { .. } => return Ok(()),
                Verdict::Ask { rule, why } => {
                    let parsed = rule.parse::<PermissionRule>();
                    prop_assert!(parsed.is_ok(), "{}: {}", rule, why);
                    if let Ok(rule) = parsed {
                        rules.allow_for_session(rule);
                    }
                }
            }
        }
        prop_assert!(false, "{:?}: {:?}", line, run(&line, PermissionMode::Default, &rules));
    }
}
