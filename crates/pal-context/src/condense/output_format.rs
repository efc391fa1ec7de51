//! Formats of tool output, and when each may be condensed.

/// Recognized format of a tool's output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OutputFormat {
    /// Log of a build or an installation.
    BuildLog,
    /// Log of a test run.
    TestRun,
    /// Log of downloads and other progress.
    Progress,
    /// Terminal control sequences, as of progress bars.
    Redraws,
    /// List of files, directories or search hits.
    Listing,
    /// JSON values.
    Json,
    /// Unified diff.
    Diff,
    /// Rows with the same columns.
    Table,
    /// Any other long output of a command.
    Other,
}

impl OutputFormat {
    /// Name for reasons and reports.
    pub fn name(self) -> &'static str {
        match self {
            OutputFormat::BuildLog => "build log",
            OutputFormat::TestRun => "test run",
            OutputFormat::Progress => "progress",
            OutputFormat::Redraws => "terminal redraws",
            OutputFormat::Listing => "listing",
            OutputFormat::Json => "json",
            OutputFormat::Diff => "diff",
            OutputFormat::Table => "table",
            OutputFormat::Other => "log",
        }
    }
}

/// Condition for condensing a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CondenseMode {
    /// Whenever it is verbose.
    Always,
    /// Where the whole output has no room (§10.6).
    Pressure,
    /// Never.
    Never,
}

/// Condition for condensing, by format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CondenseModes {
    /// Logs of builds and installations.
    pub build_logs: CondenseMode,
    /// Logs of test runs.
    pub test_runs: CondenseMode,
    /// Progress and terminal redraws.
    pub progress: CondenseMode,
    /// Lists of files, directories and search hits.
    pub listings: CondenseMode,
    /// JSON values.
    pub json: CondenseMode,
    /// Unified diffs.
    pub diffs: CondenseMode,
    /// Tables.
    pub tables: CondenseMode,
    /// Any other long output of a command.
    pub other: CondenseMode,
}

impl CondenseModes {
    /// Routine lines of logs always go; data that the model asked for goes only where there is no room for it.
    pub const STANDARD: CondenseModes = CondenseModes {
        build_logs: CondenseMode::Always,
        test_runs: CondenseMode::Always,
        progress: CondenseMode::Always,
        listings: CondenseMode::Pressure,
        json: CondenseMode::Pressure,
        diffs: CondenseMode::Pressure,
        tables: CondenseMode::Pressure,
        other: CondenseMode::Pressure,
    };

    /// Condition for a format.
    pub fn mode(&self, format: OutputFormat) -> CondenseMode {
        match format {
            OutputFormat::BuildLog => self.build_logs,
            OutputFormat::TestRun => self.test_runs,
            OutputFormat::Progress | OutputFormat::Redraws => self.progress,
            OutputFormat::Listing => self.listings,
            OutputFormat::Json => self.json,
            OutputFormat::Diff => self.diffs,
            OutputFormat::Table => self.tables,
            OutputFormat::Other => self.other,
        }
    }
}
