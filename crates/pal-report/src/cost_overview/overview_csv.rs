//! The overview as comma-separated values: one row per group, RFC 4180.

use std::io::{self, Write};

use super::CostOverview;

const FIGURES: [&str; 14] = [
    "requests",
    "cache_read_tokens",
    "cache_write_tokens",
    "input_tokens",
    "output_tokens",
    "output_tokens_recorded",
    "cost_usd",
    "unreported",
    "unpriced",
    "estimated",
    "simulated",
    "simulated_cost_usd",
    "misses",
    "misses_cost_usd",
];

impl CostOverview {
    /// Writes a heading and a row per group. A cost that is not known is empty.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = self.keys.iter().map(|key| key.name()).chain(FIGURES);
        writeln!(out, "{}", heading.collect::<Vec<_>>().join(","))?;
        for group in &self.groups {
            let totals = &group.totals;
            let mut cells: Vec<String> = group.values.iter().map(|value| quoted(value)).collect();
            let written = totals.prompt.written + totals.prompt.written_1h;
            let counts = [
                totals.requests,
                totals.prompt.read,
                written,
                totals.prompt.uncached,
                totals.output,
                totals.output - totals.output_added,
            ];
            cells.extend(counts.map(|count| count.to_string()));
            cells.push(totals.known_cost().map_or(String::new(), |cost| format!("{cost:.6}")));
            let counts = [totals.unreported, totals.unpriced, totals.estimated, totals.simulated];
            cells.extend(counts.map(|count| count.to_string()));
            cells.push(format!("{:.6}", totals.cost_simulated));
            cells.push(totals.misses.drops.to_string());
            cells.push(format!("{:.6}", totals.misses.cost));
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }
}

/// A cell, quoted if needed. A text that a spreadsheet would take for a formula gets an apostrophe.
fn quoted(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "'=1+1"),
            ("", ""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
