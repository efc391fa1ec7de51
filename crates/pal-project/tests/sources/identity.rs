//! Which project a directory belongs to.

use std::path::PathBuf;

use pal_project::find_project;

use crate::project_fixture::ProjectFixture;

fn repository(text: &str) -> ProjectFixture {
    let place = ProjectFixture::new(text);
    place.git("home/project", &["init", "-q"]);
    place.git("home/project", &["config", "user.name", "Ada"]);
    place.git("home/project", &["config", "user.email", "ada@example.org"]);
    place.git("home/project", &["add", "-A"]);
    place.git("home/project", &["commit", "-qm", "first"]);
    place
}

fn of(place: &ProjectFixture, directory: &str) -> PathBuf {
    find_project(&place.root.join(directory))
}

fn top(place: &ProjectFixture, directory: &str) -> PathBuf {
    place.root.join(directory).canonicalize().unwrap()
}

#[test]
fn a_repository_is_one_project_wherever_one_stands_in_it() {
    let place = repository("file home/project/sub/deep/b.txt | b\nfile home/plain/a.txt | a");
    let project = top(&place, "home/project");
    assert_eq!([of(&place, "home/project"), of(&place, "home/project/sub/deep")], [project.clone(), project]);
    assert_eq!(of(&place, "home/plain"), top(&place, "home/plain"), "no repository, no project around it");
    assert_eq!(of(&place, "home/gone/for/good"), top(&place, "home").join("gone/for/good"));
    std::os::unix::fs::symlink(place.root.join("home/project"), place.root.join("home/link")).unwrap();
    assert_eq!(of(&place, "home/link/sub"), top(&place, "home/project"));
}

#[test]
fn worktrees_share_the_project() {
    let place = repository("file home/project/sub/b.txt | b");
    place.git("home/project", &["worktree", "add", "-q", "../other", "-b", "other"]);
    place.git("home/project", &["worktree", "add", "-q", "inside/tree", "-b", "inside"]);
    let project = top(&place, "home/project");
    for directory in ["home/other", "home/other/sub", "home/project/inside/tree", "home/project/sub"] {
        assert_eq!(of(&place, directory), project, "{directory}");
    }
    place.git("home", &["clone", "-q", "--bare", "project", "bare.git"]);
    place.git("home/bare.git", &["worktree", "add", "-q", "../of-bare", "trunk"]);
    assert_eq!(of(&place, "home/of-bare/sub"), top(&place, "home/bare.git"));
}

#[test]
fn a_submodule_is_a_project_of_its_own() {
    let place = repository("file home/project/a.txt | a\nfile home/around/a.txt | a");
    place.git("home/around", &["init", "-q"]);
    place.git(
        "home/around",
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../project", "part"],
    );
    assert_eq!(of(&place, "home/around/part"), top(&place, "home/around/part"));
}

#[test]
fn a_forged_worktree_cannot_join_another_project() {
    let place =
        repository("file home/project/a.txt | a\nfile home/stranger/a.txt | a\nfile home/stranger/own/x | x");
    place.git("home/project", &["worktree", "add", "-q", "../other", "-b", "other"]);
    let stranger = top(&place, "home/stranger");
    let project = top(&place, "home/project");
    // The administrative folder of the real worktree: it points back to that one.
    let administrative = project.join(".git/worktrees/other");
    place.write("home/stranger/.git", format!("gitdir: {}\n", administrative.display()).as_bytes());
    assert_eq!(find_project(&stranger), stranger);
    // One of its own: it points back, but the project knows nothing of it.
    place.write("home/stranger/.git", b"gitdir: own\n");
    place.write("home/stranger/own/commondir", format!("{}\n", project.join(".git").display()).as_bytes());
    place.write("home/stranger/own/gitdir", format!("{}\n", stranger.join(".git").display()).as_bytes());
    assert_eq!(find_project(&stranger), stranger);
    for broken in ["", "gitdir:", "gitdir: /nowhere/at/all", "no link"] {
        place.write("home/stranger/.git", broken.as_bytes());
        assert_eq!(find_project(&stranger), stranger, "{broken}");
    }
}
