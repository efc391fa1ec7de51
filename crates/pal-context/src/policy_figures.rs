//! Figures of the cost-aware policy that are fitted to recorded sessions. `cargo run --release -p xtask -- fit` prints what recorded
//! sessions say beside the shipped ones; `pal eval` fits them anew without the repository that it judges.

use serde::Serialize;

/// Figures fitted to recorded sessions: what a session is expected to do before it has shown it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FittedFigures {
    /// Mean number of remaining requests of a session. It does not depend on the number so far: the mean is the same after 1, 10,
    /// 50, 100 and 150 requests.
    pub requests_to_come: f64,
    /// Share of requests that open a user turn.
    pub turn_share: f64,
    /// Shares of the pauses before a person's message: up to 5 minutes, up to 15, up to an hour, longer.
    pub turn_pauses: [f64; 4],
    /// The same before all other requests: responses, tool calls and permission prompts that take long.
    pub loop_pauses: [f64; 4],
    /// Mean growth of the context between two responses, in tokens.
    pub growth: f64,
    /// Probability that a file read is needed again, by age of the result.
    pub read_reuse: [f64; 4],
    /// The same for a file that is being worked on: it stays needed at any age.
    pub changed_read_reuse: [f64; 4],
}

impl FittedFigures {
    /// Figures of the recorded Claude sessions that this project is developed on.
    pub const SHIPPED: FittedFigures = FittedFigures {
        requests_to_come: 106.0,
        turn_share: 0.11,
        turn_pauses: [0.741, 0.122, 0.065, 0.072],
        loop_pauses: [0.990, 0.0065, 0.0020, 0.0015],
        growth: 1_320.0,
        read_reuse: [0.57, 0.45, 0.35, 0.14],
        changed_read_reuse: [0.58, 0.58, 0.47, 0.49],
    };
}

impl Default for FittedFigures {
    fn default() -> FittedFigures {
        FittedFigures::SHIPPED
    }
}

impl FittedFigures {
    /// Round figures that no recorded session has influenced: the start of a fit that must not know the shipped ones.
    pub const UNINFORMED: FittedFigures = FittedFigures {
        requests_to_come: 100.0,
        turn_share: 0.1,
        turn_pauses: [0.7, 0.1, 0.1, 0.1],
        loop_pauses: [0.99, 0.005, 0.003, 0.002],
        growth: 1_500.0,
        read_reuse: [0.5, 0.4, 0.3, 0.2],
        changed_read_reuse: [0.5, 0.5, 0.5, 0.5],
    };
}
