//! Charts: the cost of each policy, and cost against page faults.

use crate::comparison::policy_comparison::{AHEAD, EvalTable, EvalTotals, ForecastQuality, PolicyComparison};
use crate::comparison::policy_rows::THRESHOLD;
use crate::comparison::svg_picture::{SvgPicture, TextAnchor};

const WIDTH: f64 = 860.0;
/// Room for names, for figures, above, between rows.
const LEFT: f64 = 130.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 104.0;
const ROW: f64 = 26.0;

/// Bars: what each policy costs against the threshold policy, at every window, with the least that is possible.
pub(crate) fn costs(findings: &PolicyComparison) -> String {
    let panels: Vec<&EvalTable> = findings.tables.iter().filter(|table| unit(table).is_some()).collect();
    let height_of = |table: &EvalTable| 58.0 + ROW * table.rows.len() as f64;
    let height = TOP + panels.iter().map(|table| height_of(table)).sum::<f64>() + 18.0;
    let mut picture = SvgPicture::new(WIDTH, height);
    picture.text(
        "ink title",
        TextAnchor::Start,
        (24.0, 32.0),
        "What keeping a coding agent's context costs, by policy",
    );
    let about = format!(
        "{} recorded sessions, {} calls, replayed; cost against the threshold policy (100 %), less is better",
        findings.sessions, findings.calls
    );
    picture.text("faint", TextAnchor::Start, (24.0, 52.0), &about);
    key(&mut picture);
    let mut top = TOP;
    for table in panels {
        panel(&mut picture, table, top + 20.0);
        top += height_of(table);
    }
    picture.finish()
}

fn key(picture: &mut SvgPicture) {
    let y = 62.0;
    for (x, class, words) in [
        (24.0, "ours", "ours"),
        (84.0, "peers", "other agents' constants"),
        (262.0, "lost", "content that is read again because it was dropped"),
    ] {
        picture.bar(class, (x, y), (12.0, 12.0));
        picture.text("faint", TextAnchor::Start, (x + 18.0, y + 11.0), words);
    }
    let y = y + 20.0;
    picture.line("limit", true, &[(24.0, y + 6.0), (48.0, y + 6.0)]);
    picture.text(
        "faint",
        TextAnchor::Start,
        (54.0, y + 11.0),
        "the least that is possible, knowing the future",
    );
}

/// The value that counts as 100%.
fn unit(table: &EvalTable) -> Option<f64> {
    table.row(THRESHOLD).map(|row| row.total_usd).filter(|usd| *usd > 0.0)
}

fn panel(picture: &mut SvgPicture, table: &EvalTable, top: f64) {
    let Some(unit) = unit(table) else { return };
    let mut rows: Vec<&EvalTotals> = table.rows.iter().collect();
    rows.sort_by(|one, other| one.total_usd.total_cmp(&other.total_usd));
    let most = rows.iter().map(|row| row.total_usd / unit).fold(1.0, f64::max);
    let x = |share: f64| LEFT + (WIDTH - LEFT - RIGHT) * share / most;
    let bottom = top + 12.0 + ROW * rows.len() as f64;
    picture.text("ink", TextAnchor::Start, (24.0, top + 4.0), &heading(table));
    for percent in (0..=(most * 100.0) as u32).step_by(25) {
        let at = x(f64::from(percent) / 100.0);
        let class = if percent == 100 { "axis" } else { "grid" };
        picture.line(class, false, &[(at, top + 12.0), (at, bottom)]);
        picture.text("faint small", TextAnchor::Middle, (at, bottom + 14.0), &format!("{percent} %"));
    }
    for (number, row) in rows.iter().enumerate() {
        let y = top + 16.0 + ROW * number as f64;
        let class = if row.is_ours { "ours" } else { "peers" };
        picture.text("ink", TextAnchor::End, (LEFT - 8.0, y + 13.0), row.name);
        let (paid, all) = (x(row.cost_usd / unit), x(row.total_usd / unit));
        picture.bar(class, (LEFT, y), (paid - LEFT, ROW - 8.0));
        picture.bar("lost", (paid, y), (all - paid, ROW - 8.0));
        let figures = format!("{:.0} %, {} faults", 100.0 * row.total_usd / unit, row.page_faults);
        picture.text("ink small", TextAnchor::Start, (all + 6.0, y + 13.0), &figures);
    }
    if let Some(least) = table.frontier.first() {
        let at = x(least.total_usd / unit);
        picture.line("limit", true, &[(at, top + 12.0), (at, bottom)]);
        picture.text(
            "limited small",
            TextAnchor::Middle,
            (at, top + 8.0),
            &format!("{:.0} %", 100.0 * least.total_usd / unit),
        );
    }
}

fn heading(table: &EvalTable) -> String {
    let window = match table.window {
        window if window % 1_000_000 == 0 => format!("{} M", window / 1_000_000),
        window => format!("{} K", window / 1_000),
    };
    match &table.model {
        Some(model) => format!("window of {window}, {model}"),
        None => format!("window of {window}"),
    }
}

/// Dots: cost against page faults, with the frontier of the least that is possible.
pub(crate) fn faults(table: &EvalTable) -> Option<String> {
    const HEIGHT: f64 = 460.0;
    let unit = unit(table)?;
    let costs =
        table.rows.iter().map(|row| row.total_usd).chain(table.frontier.iter().map(|point| point.total_usd));
    let faults = table
        .rows
        .iter()
        .map(|row| row.page_faults)
        .chain(table.frontier.iter().map(|point| point.page_faults));
    let most_cost = costs.fold(unit, f64::max) / unit * 1.05;
    let most_faults = faults.max().unwrap_or(0).max(1) as f64 * 1.05;
    let x = |faults: u64| 70.0 + (WIDTH - 70.0 - RIGHT) * faults as f64 / most_faults;
    let y = |usd: f64| 400.0 - 320.0 * usd / unit / most_cost;
    let mut picture = SvgPicture::new(WIDTH, HEIGHT);
    picture.text(
        "ink title",
        TextAnchor::Start,
        (24.0, 32.0),
        "What is saved, and what is lost sight of for it",
    );
    let about = format!(
        "{}; down and to the left is better; green: the best that is possible, knowing the future",
        heading(table)
    );
    picture.text("faint", TextAnchor::Start, (24.0, 52.0), &about);
    for percent in (0..=(most_cost * 100.0) as u32).step_by(25) {
        let at = y(unit * f64::from(percent) / 100.0);
        picture.line("grid", false, &[(70.0, at), (WIDTH - RIGHT, at)]);
        picture.text("faint small", TextAnchor::End, (62.0, at + 4.0), &format!("{percent} %"));
    }
    picture.line("axis", false, &[(70.0, 400.0), (WIDTH - RIGHT, 400.0)]);
    let step = nice_step(most_faults);
    for number in 0..=(most_faults as u64 / step) {
        let at = x(number * step);
        picture.text("faint small", TextAnchor::Middle, (at, 416.0), &(number * step).to_string());
    }
    picture.text(
        "faint",
        TextAnchor::Middle,
        (x((most_faults / 2.0) as u64), 440.0),
        "page faults: content used again that was out of sight",
    );
    let points: Vec<(f64, f64)> =
        table.frontier.iter().map(|point| (x(point.page_faults), y(point.total_usd))).collect();
    picture.line("limit", false, &points);
    points.iter().for_each(|point| picture.dot("limited", *point));
    let mut rows: Vec<&EvalTotals> = table.rows.iter().collect();
    rows.sort_by(|one, other| other.total_usd.total_cmp(&one.total_usd));
    let mut dots: Vec<((f64, f64), Vec<&str>)> = Vec::new();
    for row in rows {
        let at = (x(row.page_faults), y(row.total_usd));
        picture.dot(if row.is_ours { "ours" } else { "peers" }, at);
        // Points at one position share a label.
        match dots.iter_mut().find(|(other, _)| (other.0 - at.0).hypot(other.1 - at.1) < 3.0) {
            Some((_, names)) => names.push(row.name),
            None => dots.push((at, vec![row.name])),
        }
    }
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (at, names) in dots {
        // Names beside one another must not lie on one another.
        let mut label = (at.0 + 9.0, at.1 + 4.0);
        while taken.iter().any(|other| (other.0 - label.0).abs() < 130.0 && (other.1 - label.1).abs() < 12.0)
        {
            label.1 += 4.0;
        }
        taken.push(label);
        picture.text("ink small", TextAnchor::Start, label, &names.join(", "));
    }
    Some(picture.finish())
}

/// Reliability diagram: predicted against observed frequency. Dots of a good forecast lie on the diagonal.
pub(crate) fn forecast(forecast: &ForecastQuality) -> String {
    let mut picture = SvgPicture::new(WIDTH, 420.0);
    picture.text("ink title", TextAnchor::Start, (24.0, 32.0), "How well the future is guessed");
    let about = "what the forecast said before each request, and what came; on the line it was right";
    picture.text("faint", TextAnchor::Start, (24.0, 52.0), about);
    let most = forecast.pauses.iter().map(|bin| bin.predicted.max(bin.actual)).fold(0.01, f64::max);
    let ahead = AHEAD.map(|requests| requests.to_string()).join(", ");
    let panels = [
        (format!("the session goes on for another {ahead} requests"), &forecast.turns, 1.0),
        (
            String::from("the next pause is longer than five minutes"),
            &forecast.pauses,
            (most * 50.0).ceil() / 50.0,
        ),
    ];
    for (number, (heading, bins, most)) in panels.into_iter().enumerate() {
        let (left, side, bottom) = (70.0 + 410.0 * number as f64, 280.0, 376.0);
        let at = |share: (f64, f64)| (left + side * share.0 / most, bottom - side * share.1 / most);
        picture.text("ink small", TextAnchor::Start, (left, bottom - side - 12.0), &heading);
        for quarter in 0..=4 {
            let share = most * f64::from(quarter) / 4.0;
            let percent = format!("{:.1} %", 100.0 * share).replace(".0 %", " %");
            picture.line("grid", false, &[at((0.0, share)), at((most, share))]);
            let (x, y) = at((0.0, share));
            picture.text("faint small", TextAnchor::End, (x - 6.0, y + 4.0), &percent);
            let (x, y) = at((share, 0.0));
            picture.text("faint small", TextAnchor::Middle, (x, y + 16.0), &percent);
        }
        picture.line("axis", true, &[at((0.0, 0.0)), at((most, most))]);
        picture.text("faint small", TextAnchor::Middle, (left + side / 2.0, bottom + 34.0), "said");
        let points: Vec<(f64, f64)> = bins.iter().map(|bin| at((bin.predicted, bin.actual))).collect();
        points.iter().for_each(|point| picture.dot("ours", *point));
    }
    picture.finish()
}

fn nice_step(most: f64) -> u64 {
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
    steps.into_iter().find(|step| most / *step as f64 <= 8.0).unwrap_or(20_000)
}
