//! Whether a call may be carried out: hooks are heard, then the rules and the mode of the session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_model::{Text, ToolUseId};
use pal_permissions::{
    Confinement, Ground, Mode, Need, Request, Rules, SandboxLevel, SandboxPolicy, SandboxState, Target,
    Verdict, confine, explain_need, holds_credentials, judge, may_concern,
};
use pal_process::Cancel;
use pal_session::{Call, Ruling};
use pal_tools::{Hidden, Input, Shell, Tool, Workspace};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::consent::ConsentMark;
use crate::event::Denial;
use crate::fencing::sandbox_policy;
use crate::inner::is_inner;
use crate::listening::{Listening, Spoken};

/// The tool that ends planning.
pub(crate) const EXIT_PLAN: &str = "ExitPlanMode";

/// What a person is asked before a call, and who asks them.
pub type Asking = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// What a person is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// The agent that wants it, if it is one that was sent.
    pub agent: Option<String>,
    /// Which call.
    pub call: ToolUseId,
    /// The tool.
    pub tool: String,
    /// What it is called with: a JSON object.
    pub input: String,
    /// Why nothing allows it already.
    pub why: String,
    /// The rule that would allow it from now on; empty where none is offered.
    pub rule: String,
    /// Parts of the command, or of the path of a file tool, that the person should look at.
    #[serde(default)]
    pub marks: Vec<ConsentMark>,
}

/// What a person answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This once.
    Once,
    /// This and everything that the rule covers, for the rest of the session.
    Session,
    /// No, and what the model is to know of it.
    No(Option<String>),
    /// No, in the words that the model is told: it was not the user who was asked.
    Refused(String),
    /// Nobody is there to be asked.
    Nobody,
}

/// Rules and mode of a session.
pub(crate) struct Gate {
    pub(crate) rules: Rules,
    pub(crate) mode: Mode,
    /// The mode that the session goes back to from planning.
    pub(crate) usual: Mode,
    /// Where the program keeps its own files.
    pub(crate) own: Option<PathBuf>,
    /// The notes of the session, where the agent writes them itself: the one file of the program's own that it may change.
    pub(crate) notes: Option<PathBuf>,
    /// Who asks a person; none if nobody is there.
    pub(crate) asking: Option<Asking>,
    /// The agent's name, if another one sent it.
    pub(crate) agent: Option<String>,
    /// Tools that it has for its memories alone.
    pub(crate) memory_tools: Vec<SmolStr>,
    /// The shell that commands run in, with its sandbox.
    pub(crate) shell: Arc<Shell>,
    /// Whether commands run in the sandbox that a rule or a person allowed, too.
    pub(crate) confines_all: bool,
}

/// What came of it.
pub(crate) struct Judged {
    pub(crate) ruling: Ruling,
    pub(crate) denial: Option<Denial>,
    /// What hooks want the model to know.
    pub(crate) notes: Vec<String>,
    /// What the call would do.
    pub(crate) needs: Vec<Need>,
    /// The sandbox that a command of it runs in.
    pub(crate) confinement: Confinement,
}

impl Gate {
    /// Planning begins or ends.
    pub(crate) fn set_mode(&mut self, name: &str) {
        self.mode = match name.parse() {
            Ok(Mode::Plan) => Mode::Plan,
            // Who ends planning goes back to what the user chose, never to more than that.
            _ => self.usual,
        };
    }

    /// A person chose how much is done without asking.
    pub(crate) fn choose_mode(&mut self, mode: Mode) {
        self.mode = mode;
        // Planning ends with what held before it.
        if mode != Mode::Plan {
            self.usual = mode;
        }
    }

    /// Whether a file may be looked at without asking anybody.
    pub(crate) fn may_look(&self, target: &Target, workspace: &Workspace) -> bool {
        let needs = [Need::Read(target.clone())];
        let sandbox = sandbox_policy(&self.shell, false);
        judged("Read", &needs, self.mode, &self.rules, (self.own.clone(), sandbox), workspace)
            == Verdict::Allow
    }

    pub(crate) fn judge(
        &mut self,
        call: &Call,
        tools: &[Box<dyn Tool>],
        workspace: &Workspace,
        hooks: &Listening,
        cancel: &Cancel,
    ) -> Judged {
        let needs = match pal_tools::find(tools, &call.name) {
            _ if is_inner(&call.name) => Ok(Vec::new()),
            Some(tool) => tool.needs(&Input(call.input.clone()), workspace),
            None => Err(format!("there is no tool of the name `{}`", call.name)),
        };
        let own = self.own.clone();
        // Whether a hook's condition fits is asked of the same rules as everything else.
        let wanted = needs.clone().unwrap_or_default();
        let fits = |rule: &str| fits(rule, &call.name, &wanted, own.clone(), workspace);
        let spoken = hooks.tool_wanted(call, &fits, self, cancel);
        // A hook that was not heard to its end has not agreed to anything.
        if cancel.is_cancelled() {
            let ruling = Ruling::Refused(String::from("Not carried out: interrupted by the user."));
            let confinement = Confinement::whole(SandboxLevel::ReadOnly);
            return Judged { ruling, denial: None, notes: Vec::new(), needs: Vec::new(), confinement };
        }
        let input = spoken.input.clone().unwrap_or_else(|| call.input.clone());
        if let Some(why) = &spoken.stop {
            let denial = Some(denial(call, &input, why, None));
            return Judged {
                ruling: Ruling::Stop(why.clone()),
                denial,
                notes: spoken.notes,
                needs: Vec::new(),
                confinement: Confinement::whole(SandboxLevel::ReadOnly),
            };
        }
        // Another input has other needs.
        let needs = match (&spoken.input, pal_tools::find(tools, &call.name)) {
            (Some(input), Some(tool)) => tool.needs(&Input(input.clone()), workspace),
            _ => needs,
        };
        // Whether rules and mode alone allow it; what is denied below never runs.
        let mut is_unasked = true;
        let verdict = match (&spoken.denied, &needs) {
            // Whoever asked for a plan wants no more than a plan.
            (None, Ok(_)) if call.name == EXIT_PLAN && self.usual == Mode::Plan => Verdict::Deny {
                why: String::from("the user wants a plan only: end with the plan as your answer"),
            },
            (Some(why), _) | (None, Err(why)) => Verdict::Deny { why: why.clone() },
            (None, Ok(needs)) if self.is_beyond_memory(call, needs, workspace) => {
                Verdict::Deny { why: format!("this agent has {} for its memories alone", call.name) }
            }
            (None, Ok(needs)) => {
                let judged = self.judged(call, needs, workspace);
                is_unasked = judged == Verdict::Allow;
                self.plan_verdict(call, heard(judged, &spoken), &spoken)
            }
        };
        let needs = needs.unwrap_or_default();
        let confinement = self.confinement(&needs, is_unasked, workspace);
        let marks = match &verdict {
            Verdict::Ask { .. } => consent_marks(&needs, self.own.clone(), workspace),
            _ => Vec::new(),
        };
        let (ruling, denial) = self.ruling(call, input, verdict, spoken.input.is_some(), marks);
        Judged { ruling, denial, notes: spoken.notes, needs, confinement }
    }

    fn judged(&self, call: &Call, needs: &[Need], workspace: &Workspace) -> Verdict {
        if self.are_about_notes(needs) {
            return by_rules_alone(&call.name, needs, &self.rules, workspace);
        }
        judged(&call.name, needs, self.mode, &self.rules, (self.own.clone(), self.sandbox(needs)), workspace)
    }

    fn sandbox(&self, needs: &[Need]) -> SandboxPolicy {
        sandbox_policy(&self.shell, needs.iter().any(|need| matches!(need, Need::Run(_))))
    }

    /// The sandbox of a command: what nobody was asked about runs where it can do no harm.
    fn confinement(&self, needs: &[Need], is_unasked: bool, workspace: &Workspace) -> Confinement {
        let command = needs.iter().find_map(|need| match need {
            Need::Run(command) => Some(command),
            _ => None,
        });
        let confinement = match command {
            Some(command) if is_unasked => {
                on_ground(self.own.clone(), self.sandbox(needs), workspace, |ground| {
                    confine(command, self.mode, &self.rules, ground)
                })
            }
            _ => Confinement::whole(SandboxLevel::Full),
        };
        match self.confines_all && confinement.level > SandboxLevel::WorkspaceWrite {
            true => Confinement::whole(SandboxLevel::WorkspaceWrite),
            false => confinement,
        }
    }

    /// Whether a tool that is there for memories alone is called for something else.
    fn is_beyond_memory(&self, call: &Call, needs: &[Need], workspace: &Workspace) -> bool {
        let folder = workspace.keeper.as_ref().map(|keeper| keeper.folder());
        let is_memory = |need: &Need| match need {
            Need::Read(target) | Need::Write(target) => {
                target.real.parent() == folder || Some(target.real.as_path()) == folder
            }
            _ => false,
        };
        self.memory_tools.contains(&call.name) && !needs.iter().all(is_memory)
    }

    /// Whether a call touches the notes of the session and nothing else.
    fn are_about_notes(&self, needs: &[Need]) -> bool {
        let is_notes = |need: &Need| match need {
            Need::Read(target) | Need::Write(target) => Some(&target.real) == self.notes.as_ref(),
            Need::Run(_) | Need::Fetch(_) | Need::Use => false,
        };
        self.notes.is_some() && !needs.is_empty() && needs.iter().all(is_notes)
    }

    /// A plan is approved by whoever can be asked: a person, or the agent that leads. No rule does that, and of a teammate no hook.
    fn plan_verdict(&self, call: &Call, verdict: Verdict, spoken: &Spoken) -> Verdict {
        let is_approved = spoken.allowed && self.agent.is_none();
        if call.name != EXIT_PLAN || self.mode != Mode::Plan || self.asking.is_none() || is_approved {
            return verdict;
        }
        match verdict {
            Verdict::Allow => {
                Verdict::Ask { why: String::from("the plan is to be approved"), rule: String::new() }
            }
            other => other,
        }
    }

    fn ruling(
        &mut self,
        call: &Call,
        input: Text,
        verdict: Verdict,
        is_changed: bool,
        marks: Vec<ConsentMark>,
    ) -> (Ruling, Option<Denial>) {
        match verdict {
            Verdict::Allow => (Ruling::Allowed { input: is_changed.then_some(input) }, None),
            Verdict::Deny { why } => {
                let denial = denial(call, &input, &why, None);
                (Ruling::Refused(format!("Not carried out: {why}")), Some(denial))
            }
            Verdict::Ask { why, rule } => self.asked(call, input, (why, rule, marks), is_changed),
        }
    }

    /// Asks a person; where there is none, the call is refused with the rule that would have allowed it.
    fn asked(
        &mut self,
        call: &Call,
        input: Text,
        (why, rule, marks): (String, String, Vec<ConsentMark>),
        is_changed: bool,
    ) -> (Ruling, Option<Denial>) {
        let agent = self.agent.clone();
        let (id, tool) = (call.id.clone(), call.name.to_string());
        // A script of several lines is never run again word for word: a rule for it would only be more to read.
        let offered = if rule.contains('\n') { String::new() } else { rule.clone() };
        let asked = Asked { agent, call: id, tool, input: input.to_string(), why, rule: offered, marks };
        let answer = self.asking.as_ref().map_or(Answer::Nobody, |asking| asking(&asked));
        match answer {
            Answer::Once => (Ruling::Allowed { input: is_changed.then_some(input) }, None),
            Answer::Session => {
                if let Ok(rule) = asked.rule.parse() {
                    self.rules.allow_for_session(rule);
                }
                (Ruling::Allowed { input: is_changed.then_some(input) }, None)
            }
            Answer::No(words) => {
                let denial = denial(call, &input, &asked.why, Some(&rule));
                let words = words.map_or(String::new(), |words| format!(" They say: {words}"));
                (Ruling::Refused(format!("Not carried out: the user did not want it.{words}")), Some(denial))
            }
            Answer::Refused(words) => {
                let denial = denial(call, &input, &asked.why, None);
                (Ruling::Refused(format!("Not carried out: {words}")), Some(denial))
            }
            Answer::Nobody => not_asked(call, &input, &asked.why, &rule),
        }
    }
}

/// A verdict after the hooks were heard.
fn heard(verdict: Verdict, spoken: &Spoken) -> Verdict {
    match verdict {
        // A hook may answer in the place of a person, and may want one to be asked; it cannot lift what is denied.
        Verdict::Ask { .. } if spoken.allowed => Verdict::Allow,
        // No rule answers what a hook asks: it is asked behind all rules.
        Verdict::Allow if let Some(why) = &spoken.asks => {
            Verdict::Ask { why: why.clone(), rule: String::new() }
        }
        other => other,
    }
}

/// What is said of a call that somebody would have to be asked about, where nobody is there.
fn not_asked(call: &Call, input: &Text, why: &str, rule: &str) -> (Ruling, Option<Denial>) {
    let rule = Some(rule).filter(|rule| !rule.is_empty());
    let way = rule.map_or(String::new(), |rule| {
        format!(
            " The rule `{rule}` under permissions.allow in the settings, or --allowed-tools '{rule}', would allow it."
        )
    });
    let words = format!(
        "Not carried out: {why}, and nobody is here to be asked.{way} Do not try the same by another route: do what can be \
         done without it, and say in your last message what it was needed for."
    );
    (Ruling::Refused(words), Some(denial(call, input, why, rule)))
}

/// The files that searches leave out: those that a rule forbids to look at, and those that hold credentials, because a
/// search is allowed as a whole and nobody is asked about a single file of it.
pub(crate) fn hidden(rules: &Rules, own: &Path, workspace: &Workspace) -> Hidden {
    let rules = rules.clone();
    let (roots, home, session) = (workspace.roots.clone(), workspace.home.clone(), kept(&workspace.session));
    let own = Some(own.to_owned());
    Hidden(Box::new(move |real| {
        // What lies above the project says nothing about the files in it.
        let below = roots.iter().find_map(|root| real.strip_prefix(root).ok()).unwrap_or(real);
        if holds_credentials(below) {
            return true;
        }
        if rules.deny.is_empty() {
            return false;
        }
        let resolve = |named: &str, directory: &Path| directory.join(named);
        let ground = Ground {
            roots: roots.clone(),
            home: home.clone(),
            session: session.clone(),
            own: own.clone(),
            memory: None,
            directory: roots.first().cloned().unwrap_or_default(),
            resolve: &resolve,
            is_folder: &Path::is_dir,
            sandbox: SandboxPolicy::default(),
        };
        let target = Target { named: real.display().to_string(), real: real.to_owned() };
        rules.denies_reading(&target, &ground).is_some()
    }))
}

/// What a person should look at before they allow a call.
fn consent_marks(needs: &[Need], own: Option<PathBuf>, workspace: &Workspace) -> Vec<ConsentMark> {
    on_ground(own, SandboxPolicy::default(), workspace, |ground| {
        needs.iter().flat_map(|need| explain_need(need, ground)).map(ConsentMark::from).collect()
    })
}

/// What permissions say to a call in this workspace.
pub(crate) fn judged(
    tool: &str,
    needs: &[Need],
    mode: Mode,
    rules: &Rules,
    (own, sandbox): (Option<PathBuf>, SandboxPolicy),
    workspace: &Workspace,
) -> Verdict {
    on_ground(own, sandbox, workspace, |ground| judge(&Request { tool, needs, mode }, rules, ground))
}

/// What rules say that deny or ask, to a call that needs no permission otherwise.
fn by_rules_alone(tool: &str, needs: &[Need], rules: &Rules, workspace: &Workspace) -> Verdict {
    let resolve = |named: &str, directory: &Path| workspace.resolve_in(named, directory).real;
    let ground = Ground {
        roots: workspace.roots.clone(),
        home: workspace.home.clone(),
        // Neither of these is closed here: a folder that holds nothing stands for what the session put aside.
        session: workspace.session.join("nothing"),
        own: None,
        memory: None,
        directory: workspace.directory(),
        resolve: &resolve,
        is_folder: &Path::is_dir,
        sandbox: SandboxPolicy { state: SandboxState::Off, ..SandboxPolicy::default() },
    };
    judge(&Request { tool, needs, mode: Mode::Bypass }, rules, &ground)
}

/// Asks something of permissions that depends on what lies where.
fn on_ground<T>(
    own: Option<PathBuf>,
    sandbox: SandboxPolicy,
    workspace: &Workspace,
    ask: impl FnOnce(&Ground<'_>) -> T,
) -> T {
    let resolve = |named: &str, directory: &Path| workspace.resolve_in(named, directory).real;
    ask(&Ground {
        roots: workspace.roots.clone(),
        home: workspace.home.clone(),
        session: kept(&workspace.session),
        own,
        memory: workspace.keeper.as_ref().map(|keeper| keeper.folder().to_owned()),
        directory: workspace.directory(),
        resolve: &resolve,
        is_folder: &Path::is_dir,
        sandbox,
    })
}

/// What sessions of this project put aside: a copy of a session names what its original put there.
pub(crate) fn kept(session: &Path) -> PathBuf {
    session.parent().unwrap_or(session).to_owned()
}

/// Whether the condition of a hook is about a call. What may be meant is meant: a guard that runs once too often does no harm.
fn fits(rule: &str, tool: &str, needs: &[Need], own: Option<PathBuf>, workspace: &Workspace) -> bool {
    let Ok(rule) = rule.parse() else { return false };
    on_ground(own, SandboxPolicy::default(), workspace, |ground| may_concern(&rule, tool, needs, ground))
}

fn denial(call: &Call, input: &Text, reason: &str, rule: Option<&str>) -> Denial {
    Denial {
        tool_name: call.name.clone(),
        tool_use_id: call.id.as_str().to_owned(),
        tool_input: input.to_string(),
        reason: reason.to_owned(),
        rule: rule.map(str::to_owned),
    }
}
