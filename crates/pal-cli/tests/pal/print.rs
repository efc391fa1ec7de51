//! `pal` without a subcommand: help, wrong use, and what is told when the agent cannot work.

use crate::program::TestHome;

#[test]
fn pal_alone_prints_help_and_an_unknown_word_is_an_error() {
    let home = TestHome::new();
    let said = home.run(&[]);
    assert!(said.code == 0 && said.out.contains("Examples:") && said.out.contains("pal -p"), "{}", said.out);
    for section in ["Agent:", "Session:", "Model:", "Limits:", "Permissions:", "Exit codes:"] {
        assert!(said.out.contains(section), "{section}\n{}", said.out);
    }
    let said = home.run(&["cots"]);
    assert!(said.code == 2 && said.err.contains("did you mean \"cost\"?"), "{}", said.err);
}

#[test]
fn wrong_usage_is_reported_with_a_hint() {
    let home = TestHome::new();
    for (arguments, words) in [
        (&["-p"][..], "no prompt"),
        (&["-p", " "], "no prompt"),
        (&["-p", "x", "--include-partial-messages"], "stream-json"),
        (&["-p", "x", "--fork-session"], "--continue or --resume"),
        (&["-p", "x", "--input-format", "stream-json"], "--output-format stream-json"),
    ] {
        let said = home.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words) && said.err.contains("hint:"), "{arguments:?}: {}", said.err);
    }
    for arguments in
        [&["-p", "x", "--max-turns", "0"][..], &["-p", "--output-format", "xml"], &["-p", "-c", "-r", "1"]]
    {
        assert_eq!(home.run(arguments).code, 2, "{arguments:?}");
    }
}
