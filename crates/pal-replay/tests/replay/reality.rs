//! tmp
use crate::sessions::{on_all_cores, recorded};
use pal_replay::{Options, replay_watched};
use pal_testkit::session_files;

#[test]
fn dump() {
    let files: Vec<_> = session_files()
        .into_iter()
        .filter(|f| f.to_string_lossy().contains("/claude/") || f.to_string_lossy().contains("/codex/"))
        .collect();
    let out = on_all_cores(&files, |file| {
        let mut lines = String::new();
        let rec = recorded(file);
        replay_watched(&rec, &Options::plain(), &mut |s| {
            let u = |u: Option<&pal_model::Usage>| {
                u.map(|u| {
                    (
                        u.cache_read_input_tokens,
                        u.cache_creation_input_tokens,
                        u.input_tokens,
                        u.output_tokens,
                    )
                })
                .unwrap_or_default()
            };
            let (a, b) = (u(s.recorded), u(s.simulated));
            lines.push_str(&format!(
                "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:?}\n",
                rec.name(),
                s.number,
                s.started,
                s.since_previous.map_or(-1.0, |d| d.as_secs_f64()),
                s.model,
                s.was_cut,
                a.0,
                a.1,
                a.2,
                a.3,
                b.0,
                b.1,
                b.2,
                b.3,
                s.cache.map(|c| (c.marks, c.steps_back))
            ));
        })
        .unwrap();
        lines
    });
    std::fs::write("/tmp/wt/replay/target/dump.tsv", out.concat()).unwrap();
}
