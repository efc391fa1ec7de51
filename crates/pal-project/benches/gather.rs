//! What it costs to gather everything around a session in a repository of 50 000 files, and to look for changes before
//! each further turn.
// A bench that cannot go on has failed.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use pal_project::{
    InstructionLimit, InstructionSearch, ProjectQuery, discover_instructions, take_git_snapshot,
    take_project_snapshot, user_folders,
};

const DIRECTORIES: usize = 500;
const FILES_PER_DIRECTORY: usize = 100;

/// Long enough that a snapshot is always measured whole.
const PATIENCE: Duration = Duration::from_secs(10);

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "gc.auto=0"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with the instruction files of a large project.
fn make(root: &Path) {
    for directory in 0..DIRECTORIES {
        let folder = root.join(format!("packages/group-{:02}/part-{directory:03}/src", directory % 20));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..FILES_PER_DIRECTORY {
            fs::write(folder.join(format!("module_{file:03}.rs")), format!("// {directory} {file}\n"))
                .unwrap();
        }
    }
    let page = "- Keep functions short, and say why, not what.\n".repeat(80);
    fs::create_dir_all(root.join(".claude/rules")).unwrap();
    fs::create_dir_all(root.join("docs")).unwrap();
    for rule in 0..30 {
        let front_matter = if rule % 3 == 0 { "" } else { "---\npaths: packages/**/*.rs\n---\n" };
        let text = format!("{front_matter}# Rule {rule}\n{page}");
        fs::write(root.join(format!(".claude/rules/rule-{rule:02}.md")), text).unwrap();
    }
    for page_number in 0..5 {
        fs::write(root.join(format!("docs/page-{page_number}.md")), format!("# {page_number}\n{page}"))
            .unwrap();
    }
    let includes: String = (0..5).map(|page_number| format!("See @docs/page-{page_number}.md\n")).collect();
    fs::write(root.join("CLAUDE.md"), format!("# Project\n{includes}{page}")).unwrap();
    fs::write(root.join("packages/AGENTS.md"), format!("# Packages\n{page}")).unwrap();
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "everything"]);
    fs::write(root.join("packages/new.rs"), "// new\n").unwrap();
}

fn search(root: &Path, home: &Path) -> InstructionSearch {
    InstructionSearch {
        managed: vec![home.join("etc")],
        user: user_folders(home, &home.join(".palimpsest")),
        home: Some(home.to_owned()),
        directory: root.join("packages/group-00/part-000"),
        root: None,
        added: Vec::new(),
        listed: Vec::new(),
        allowed: Vec::new(),
        refused: Vec::new(),
        rules: pal_permissions::RuleSet::default(),
        is_on: true,
        is_bare: false,
        limit: InstructionLimit {
            tokens_max: 40_000,
            drops: false,
            measure: Arc::new(|text| text.len() as u64 / 4),
        },
    }
}

fn gathering(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    fs::create_dir_all(&root).unwrap();
    make(&root);
    let search = search(&root, &folder.path().join("home"));
    let request = |git_time| ProjectQuery { search: search.clone(), git_time, shell: Some("zsh".to_owned()) };
    let (without_git, with_git) = (request(None), request(Some(PATIENCE)));

    let mut group = criterion.benchmark_group("sources");
    group.sample_size(20);
    group.bench_function("files and machine", |bencher| {
        bencher.iter(|| take_project_snapshot(black_box(&without_git)))
    });
    group.bench_function("git", |bencher| bencher.iter(|| take_git_snapshot(black_box(&root), PATIENCE)));
    group.bench_function("files, machine and git", |bencher| {
        bencher.iter(|| take_project_snapshot(black_box(&with_git)))
    });

    let mut discovered = discover_instructions(&search);
    for directory in 0..DIRECTORIES {
        let part = format!("packages/group-{:02}/part-{directory:03}/src/module_000.rs", directory % 20);
        discovered.join_for_path(&root.join(part));
    }
    group.bench_function("changes before a turn", |bencher| bencher.iter(|| discovered.take_changes()));
    let touched = root.join("packages/group-07/part-007/src/module_001.rs");
    group.bench_function("a touch", |bencher| bencher.iter(|| discovered.join_for_path(black_box(&touched))));
    group.finish();
}

criterion_group!(benches, gathering);
criterion_main!(benches);
