//! What is around a session and may change while it runs: instruction files and skills.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pal_engine::Announced;
use pal_prompt::{Catalogue, Instruction, McpInstructions, Offer, Offered, announce};
use pal_sources::{Discovered, Notice};
use smol_str::SmolStr;

/// What is around a session.
pub(crate) struct Around {
    pub(crate) instructions: Discovered,
    pub(crate) skills: Vec<Offered>,
    pub(crate) agents: Vec<Offered>,
    /// What servers say about the use of their tools.
    pub(crate) servers: Vec<McpInstructions>,
    /// Whether the model is told of what came or went.
    pub(crate) announces: bool,
}

impl Around {
    /// What joins the session because a file was touched: the rules that are for it.
    pub(crate) fn touched(&mut self, path: &Path) -> Vec<Instruction> {
        self.instructions.touched(path)
    }

    /// What it is told because it works elsewhere now.
    pub(crate) fn moved(&mut self, directory: &Path) -> Vec<String> {
        texts(self.instructions.moved(directory))
    }

    /// What it is told because files changed on disk.
    pub(crate) fn changes(&mut self) -> Vec<String> {
        texts(self.instructions.changes())
    }

    /// What it is told of tools and skills that it has not been told of.
    pub(crate) fn announcement(
        &self,
        announced: &BTreeMap<SmolStr, BTreeSet<SmolStr>>,
        catalogue: &Catalogue,
    ) -> Option<Announced> {
        if !self.announces {
            return None;
        }
        let offer = Offer {
            tools: catalogue.offered(),
            skills: self.skills.clone(),
            agents: self.agents.clone(),
            servers: self.servers.clone(),
        };
        let announcement = announce(announced, &offer)?;
        let pal_prompt::Announcement { text, descriptions, decisions, .. } = announcement;
        Some(Announced { text, descriptions, decisions })
    }
}

fn texts(notices: Vec<Notice>) -> Vec<String> {
    notices.into_iter().map(|notice| notice.text).collect()
}
