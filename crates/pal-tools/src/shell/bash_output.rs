//! BashOutput: what a command in the background printed.

use std::sync::Arc;
use std::time::Duration;

use pal_permissions::Need;
use serde::Deserialize;

use super::{Shell, told};
use crate::input::lenient;
use crate::{Input, Output, Running, Tool, Workspace};

/// The longest wait.
const WAIT_MS_MAX: u64 = 600_000;

/// The most that is shown at once.
pub(super) const NEWS_BYTES_MAX: usize = 32_000;

/// Shows what a command in the background printed.
#[derive(Clone, Debug)]
pub struct BashOutput(pub Arc<Shell>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    task_id: String,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    wait_ms: Option<u64>,
}

impl Tool for BashOutput {
    fn name(&self) -> &'static str {
        "BashOutput"
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        input.read::<Fields>().map(|_| Vec::new())
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        let Fields { task_id, wait_ms } = match input.read() {
            Ok(fields) => fields,
            Err(wrong) => return Output::error(&wrong),
        };
        let background = &self.0.background;
        if let Some(wait_ms) = wait_ms {
            let time = Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
            background.wait_for_news(&task_id, time, running.cancel);
        }
        match background.news(&task_id, NEWS_BYTES_MAX) {
            Some(news) => Output::text(told::news(&news).trim_end_matches('\n')),
            None => unknown(&self.0, &task_id),
        }
    }
}

/// There is no such task.
pub(super) fn unknown(shell: &Shell, id: &str) -> Output {
    let known: Vec<String> = shell.background.list().into_iter().map(|task| task.id).collect();
    let known = if known.is_empty() {
        "There is none.".to_owned()
    } else {
        format!("There are: {}.", known.join(", "))
    };
    Output::error(&format!("No background task is called {id}. {known}"))
}
