//! The project of the demo: a few scripts, and generated tide readings.

use std::fmt::Write as _;

/// Tide stations; each has a file of readings.
const STATIONS: [&str; 12] = [
    "aberlour",
    "brightsea",
    "coldharbour",
    "dunmore",
    "eastness",
    "farstone",
    "gullrock",
    "highsand",
    "inverlea",
    "jettyhead",
    "kelpbay",
    "longreach",
];

/// Readings per station.
const READINGS: u32 = 120;
/// Lines of the gauge log.
const LOG_LINES: u32 = 760;

/// Returns the path and text of each file of the project.
pub(super) fn files() -> Vec<(String, String)> {
    let fixed = [
        ("README.md", include_str!("project/README.md")),
        ("src/mean.awk", include_str!("project/mean.awk")),
        ("test.sh", include_str!("project/test.sh")),
        ("rebuild.sh", include_str!("project/rebuild.sh")),
    ];
    let fixed = fixed.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let readings = (0..STATIONS.len()).map(|at| (format!("data/{}.csv", STATIONS[at]), readings(at)));
    let made = [(String::from("expected.txt"), expected()), (String::from("logs/gauges.log"), log())];
    fixed.into_iter().chain(readings).chain(made).collect()
}

/// Height of the tide in centimetres; none if the gauge was silent.
fn height(station: usize, reading: u32) -> Option<u32> {
    let station = u32::try_from(station).unwrap_or(0);
    let is_silent = reading < 40 && (reading * 7 + station * 5).is_multiple_of(13);
    let (phase, rough) = ((reading * 10 + station * 97) % 745, (reading * reading * 31 + station * 17) % 23);
    // One tide takes 12 hours and 25 minutes.
    let tide = if phase < 372 { phase } else { 745 - phase };
    (!is_silent).then_some(120 + tide + rough)
}

fn readings(station: usize) -> String {
    let mut text = String::from("station,time,height_cm\n");
    for reading in 0..READINGS {
        let (hour, minute) = (reading / 6, reading % 6 * 10);
        let height = height(station, reading).map_or(String::new(), |height| height.to_string());
        let _ = writeln!(text, "{},2031-03-01T{hour:02}:{minute:02},{height}", STATIONS[station]);
    }
    text
}

/// Returns the correct means, without gaps.
fn expected() -> String {
    let mut text = String::new();
    for (at, station) in STATIONS.iter().enumerate() {
        let heights: Vec<u32> = (0..READINGS).filter_map(|reading| height(at, reading)).collect();
        let mean = f64::from(heights.iter().sum::<u32>()) / heights.len().max(1) as f64;
        let _ = writeln!(text, "{station} {mean:.1}");
    }
    text
}

/// Returns the gauge log: long, and of little use to a model.
fn log() -> String {
    let mut text = String::new();
    for line in 0..LOG_LINES {
        let station = STATIONS[(line as usize * 5) % STATIONS.len()];
        let (hour, minute, second) = (line / 60 % 24, line % 60, line * 17 % 60);
        let (volts, signal) = (3_300 + line * 37 % 400, 40 + line * 13 % 55);
        let _ = writeln!(
            text,
            "2031-03-01T{hour:02}:{minute:02}:{second:02} gauge {station} battery {volts} mV, signal {signal} %, packet {line:05}"
        );
    }
    text
}
