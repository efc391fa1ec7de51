//! Kill switches.

use std::time::{Duration, Instant, SystemTime};

use pal_settings::KillSwitch;

use crate::World;

/// Longer than the file is left alone.
const LATER: Duration = Duration::from_millis(1_100);

#[test]
fn settings_and_variables_switch_off_and_say_who_did() {
    let world = World::new()
        .user("disabled = [\"spill\"]")
        .managed("disabled = [\"web_fetch\"]")
        .variable("PAL_DISABLE_FOLD", "1")
        .variable("PAL_DISABLE_SNIP", "0")
        .variable("PAL_DISABLE_HOOKS", "");
    let settings = world.settings();
    let off: Vec<&str> = KillSwitch::ALL
        .iter()
        .filter(|&&switch| settings.switches.is_off(switch))
        .map(|off| off.name())
        .collect();
    assert_eq!(off, ["spill", "fold", "web_fetch"]);
    assert_eq!(settings.switches.why(KillSwitch::Fold), "PAL_DISABLE_FOLD");
    let why = settings.switches.why(KillSwitch::Spill);
    assert!(why.starts_with("`disabled` in ") && why.ends_with("home/settings.toml, line 1"), "{why}");
    assert!(settings.warnings.is_empty());
    let typo = World::new().variable("PAL_DISABLE_FLOD", "1").settings();
    assert_eq!(typo.warnings, ["PAL_DISABLE_FLOD is not a kill switch; did you mean `PAL_DISABLE_FOLD`?"]);
}

#[test]
fn compaction_has_two_switches() {
    let by = |name: &str| World::new().variable(name, "1").settings();
    let (alone, all) = (by("PAL_DISABLE_AUTO_COMPACT"), by("PAL_DISABLE_COMPACT"));
    assert!(!alone.window_for("m").auto_compact && !all.window_for("m").auto_compact);
    assert!(alone.may_compact() && !all.may_compact());
    assert_eq!(all.compaction_off().as_deref(), Some("PAL_DISABLE_COMPACT"));
    assert_eq!(World::new().settings().compaction_off(), None);
}

#[test]
fn the_flags_file_counts_while_a_session_runs() {
    let world = World::new();
    let switches = world.settings().switches;
    let session = switches.for_session();
    let start = Instant::now();
    assert!(!switches.is_off_at(KillSwitch::Fold, start));
    let world = world.file("home/flags.toml", "disabled = [\"fold\", \"memory\"]");
    assert!(!switches.is_off_at(KillSwitch::Fold, start), "it is not looked at all the time");
    assert!(switches.is_off_at(KillSwitch::Fold, start + LATER));
    assert!(session.is_off_at(KillSwitch::Fold, start + LATER));
    assert!(switches.is_off_at(KillSwitch::Memory, start + LATER));
    assert!(
        !session.is_off_at(KillSwitch::Memory, start + LATER),
        "what touches the prefix stays for the session"
    );
    assert!(switches.for_session().is_off(KillSwitch::Memory), "the next session starts without it");
    assert!(session.why(KillSwitch::Fold).ends_with("home/flags.toml"));
    std::fs::remove_file(world.path("home/flags.toml")).unwrap();
    assert!(!session.is_off_at(KillSwitch::Fold, start + 2 * LATER));
    assert!(session.take_notices().is_empty());
}

#[test]
fn a_broken_flags_file_changes_nothing_and_is_told_of_once() {
    let world = World::new().file("home/flags.toml", "disabled = [\"fold\"]");
    let switches = world.settings().switches;
    let start = Instant::now();
    assert!(switches.is_off_at(KillSwitch::Fold, start));
    let mut at = start;
    for broken in ["disabled = [\"flod\"]", "disabled = [", "enabled = []", "disabled = 7"] {
        std::fs::write(world.path("home/flags.toml"), broken).unwrap();
        for _ in 0..3 {
            at += LATER;
            assert!(switches.is_off_at(KillSwitch::Fold, at), "{broken}: what held goes on to hold");
        }
        let notices = switches.take_notices();
        assert!(notices.len() == 1 && notices[0].contains("flags.toml"), "{broken}: {notices:?}");
    }
    std::fs::write(world.path("home/flags.toml"), "").unwrap();
    assert!(!switches.is_off_at(KillSwitch::Fold, at + LATER));
}

#[test]
fn a_file_that_did_not_change_is_not_read_again() {
    let world = World::new().file("home/flags.toml", "disabled = [\"fold\"]");
    let path = world.path("home/flags.toml");
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    let age = |text: &str| {
        std::fs::write(&path, text).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    };
    age("disabled = [\"fold\"]");
    let switches = world.settings().switches;
    let start = Instant::now();
    assert!(switches.is_off_at(KillSwitch::Fold, start));
    age("disabled = [\"snip\"]");
    assert!(switches.is_off_at(KillSwitch::Fold, start + LATER), "same time, same size");
    age("disabled = [\"spill\"]");
    assert!(switches.is_off_at(KillSwitch::Spill, start + 2 * LATER), "another size");
}

#[test]
fn each_switch_has_a_name_of_its_own() {
    for switch in KillSwitch::ALL {
        assert_eq!(KillSwitch::find(switch.name()), Some(*switch));
        assert!(switch.variable().starts_with("PAL_DISABLE_"));
    }
    assert_eq!(KillSwitch::find("Fold"), None);
}
