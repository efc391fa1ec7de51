//! KillBash: the end of a command in the background.

use std::sync::Arc;

use pal_permissions::Need;
use serde::Deserialize;

use super::bash_output::{NEWS_BYTES_MAX, unknown};
use super::{Shell, told};
use crate::{Input, Output, Running, Tool, Workspace};

/// Ends a command in the background.
#[derive(Clone, Debug)]
pub struct KillBash(pub Arc<Shell>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    task_id: String,
}

impl Tool for KillBash {
    fn name(&self) -> &'static str {
        "KillBash"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        // Only what the session started itself has an id.
        input.read::<Fields>().map(|_| Vec::new())
    }

    fn run(&self, input: &Input, _: &Running<'_>) -> Output {
        let Fields { task_id } = match input.read() {
            Ok(fields) => fields,
            Err(wrong) => return Output::error(&wrong),
        };
        self.0.background.kill(&task_id);
        match self.0.background.news(&task_id, NEWS_BYTES_MAX) {
            Some(news) => Output::text(told::news(&news).trim_end_matches('\n')),
            None => unknown(&self.0, &task_id),
        }
    }
}
