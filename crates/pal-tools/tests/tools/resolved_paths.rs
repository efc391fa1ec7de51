//! Resolution of paths and refusal of changed targets.

use std::os::unix::fs::symlink;

use pal_permissions::ToolAccess;
use serde_json::json;

use crate::common::Place;

#[test]
fn paths_are_resolved_whether_they_exist_or_not() {
    let place = Place::new();
    place.put("src/deep/a.rs", "");
    let outside = place.outside("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    symlink("src/deep", place.path("short")).unwrap();
    symlink(&outside, place.path("out")).unwrap();
    symlink(outside.join("not-yet"), place.path("dangling")).unwrap();
    symlink("loop", place.path("loop")).unwrap();
    place.workspace.change_directory(&place.path("src"));
    let home = place.outside("home");
    for (named, expected) in [
        ("deep/a.rs", place.path("src/deep/a.rs")),
        ("./deep/../deep/./a.rs", place.path("src/deep/a.rs")),
        ("../short/a.rs", place.path("src/deep/a.rs")),
        ("../short/../new.rs", place.path("src/new.rs")),
        ("no/such/../folder/x", place.path("src/no/folder/x")),
        ("../out/new", outside.join("new")),
        ("../dangling", outside.join("not-yet")),
        ("../dangling/x", outside.join("not-yet/x")),
        ("../loop", place.path("loop")),
        ("~", home.clone()),
        ("~/x/y", home.join("x/y")),
        ("~x", place.path("src/~x")),
        ("/../../etc/hosts", "/etc/hosts".into()),
        ("/proc/self/root/etc/hosts", "/etc/hosts".into()),
        ("", place.path("src")),
    ] {
        let target = place.workspace.resolve(named);
        assert_eq!((target.real, target.named.as_str()), (expected, named));
    }
}

#[test]
fn a_link_changed_after_permission_is_refused() {
    let place = Place::new();
    let secret = place.outside("secret");
    std::fs::write(&secret, "secret\n").unwrap();
    for (tool, input) in [
        ("Read", json!({"file_path": "a"})),
        ("Write", json!({"file_path": "a", "content": "mine"})),
        ("Edit", json!({"file_path": "a", "old_string": "", "new_string": "mine"})),
        ("Grep", json!({"pattern": "secret", "path": "a", "output_mode": "content"})),
    ] {
        let path = place.put("a", "");
        let granted = place.needs(tool, &input).unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&secret, &path).unwrap();
        let said = place.call_with(tool, &input, &granted).wrong();
        assert!(
            said.contains("not what permission was given for") && !said.contains("secret\n"),
            "{tool}: {said}"
        );
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n", "{tool}");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn another_directory_means_another_permission() {
    let place = Place::new();
    place.put("sub/a", "x");
    let input = json!({"file_path": "a", "content": "y"});
    let granted = place.needs("Write", &input).unwrap();
    place.workspace.change_directory(&place.path("sub"));
    assert!(place.call_with("Write", &input, &granted).wrong().contains("permission"));
    assert_eq!(place.text("sub/a"), "x");
    let reading = [ToolAccess::Read(place.workspace.resolve("a"))];
    assert!(
        place.call_with("Write", &input, &reading).wrong().contains("permission"),
        "reading is not writing"
    );
}

#[test]
fn required_access_names_the_real_path() {
    let place = Place::new();
    let outside = place.outside("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, place.path("out")).unwrap();
    for (tool, input, expected) in [
        ("Read", json!({"file_path": "out/x"}), outside.join("x")),
        ("Write", json!({"file_path": "out/x", "content": ""}), outside.join("x")),
        ("Edit", json!({"file_path": "out/x", "old_string": "a", "new_string": "b"}), outside.join("x")),
        ("Grep", json!({"pattern": "x", "path": "out"}), outside.clone()),
        ("Grep", json!({"pattern": "x"}), place.path("")),
        ("Glob", json!({"pattern": "*", "path": "out"}), outside.clone()),
        ("Glob", json!({"pattern": "out/deeper/**/*.rs"}), outside.join("deeper")),
        ("Glob", json!({"pattern": "../../**/x"}), place.outside("").parent().unwrap().to_owned()),
        ("Glob", json!({"pattern": "/etc/*"}), "/etc".into()),
        ("Glob", json!({"pattern": "~/*"}), place.outside("home")),
    ] {
        let needs = place.needs(tool, &input).unwrap();
        let [ToolAccess::Read(target) | ToolAccess::Write(target)] = &needs[..] else { panic!("{needs:?}") };
        assert_eq!(target.real, expected.components().collect::<std::path::PathBuf>(), "{tool} {input}");
        assert_eq!(matches!(needs[0], ToolAccess::Write(_)), matches!(tool, "Write" | "Edit"));
    }
    for (tool, input) in
        [("Todo", json!({"todos": []})), ("EnterPlanMode", json!({})), ("ExitPlanMode", json!({"plan": "p"}))]
    {
        assert_eq!(place.needs(tool, &input), Ok(Vec::new()), "{tool}");
    }
    let skill = place.needs("Skill", &json!({"skill": " /x"}));
    assert_eq!(skill, Ok(vec![ToolAccess::Named(String::from("x"))]), "rules name skills");
}
