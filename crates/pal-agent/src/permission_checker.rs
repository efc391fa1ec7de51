//! Decides whether a call may run: hooks first, then the rules and the mode of the session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_events::{
    ASK_USER_QUESTION, CallApproval, ConsentMark, PermissionAnswer, PermissionAsker, PermissionQuestion,
    ToolDenial,
};
use pal_model::SharedText;
use pal_permissions::{
    CommandMark, Confinement, PermissionContext, PermissionMode, PermissionRequest, RuleSet, SandboxLevel,
    SandboxLimits, SandboxState, SourcedRule, TargetPath, ToolAccess, Verdict, authorize, confine_command,
    explain_access, may_match,
};
use pal_process::CancelToken;
use pal_run::{CallRuling, ToolCall};
use pal_tools::{
    Shell, ToolHandler, ToolInput, Workspace, judge_access, sandbox_limits, with_permission_context,
};
use smol_str::SmolStr;

use crate::hook_runner::{HookRuling, HookRunner};
use crate::options::AgentOptions;
use crate::session_tools::is_inner;
use crate::session_tools::question_tool::{answered_input, has_answers};

/// Name of the tool that ends planning.
pub(crate) const EXIT_PLAN: &str = "ExitPlanMode";

/// Rules and mode of a session.
pub(crate) struct PermissionChecker {
    pub(crate) rules: RuleSet,
    pub(crate) mode: PermissionMode,
    /// Mode to return to after planning.
    pub(crate) usual: PermissionMode,
    /// Home directory of the program.
    pub(crate) own: Option<PathBuf>,
    /// Session notes, if the agent writes them itself: the only file of the program that it may change.
    pub(crate) notes: Option<PathBuf>,
    /// Asks a person; none if the agent runs unattended.
    pub(crate) asking: Option<PermissionAsker>,
    /// Name of a subagent.
    pub(crate) agent: Option<String>,
    /// Tools that may be used for memories only.
    pub(crate) memory_tools: Vec<SmolStr>,
    /// Shell of the session, with its sandbox.
    pub(crate) shell: Arc<Shell>,
    /// Whether commands allowed by a rule or a person also run in the sandbox.
    pub(crate) confines_all: bool,
    /// Mode that the model was last told of.
    pub(crate) announced_mode: PermissionMode,
    /// Calls denied since the prompt.
    pub(crate) denials: Vec<ToolDenial>,
    /// Whether the mode bypass may be chosen.
    pub(crate) allows_bypass: bool,
}

/// Judgement of a call.
pub(crate) struct CallJudgement {
    pub(crate) ruling: CallRuling,
    pub(crate) denial: Option<ToolDenial>,
    /// Context from hooks for the model.
    pub(crate) notes: Vec<String>,
    /// Access of the call.
    pub(crate) needs: Vec<ToolAccess>,
    /// Sandbox of its commands.
    pub(crate) confinement: Confinement,
}

impl PermissionChecker {
    /// Returns the checker of a session; `saved_mode` is the mode that a resumed session was in.
    pub(crate) fn new(
        options: &AgentOptions,
        shell: Arc<Shell>,
        saved_mode: Option<&str>,
    ) -> PermissionChecker {
        let mode = options.permissions.mode;
        let mut checker = PermissionChecker {
            rules: options.permissions.rules.clone(),
            mode,
            // An approved plan is carried out with questions.
            usual: match mode {
                PermissionMode::Plan if options.permissions.asker.is_some() => PermissionMode::Default,
                mode => mode,
            },
            own: Some(options.home.clone()),
            notes: None,
            asking: options.permissions.asker.clone(),
            agent: options.subagent.identity.as_ref().map(|(name, _)| name.clone()),
            memory_tools: options.memory.tools.clone(),
            shell,
            confines_all: options.tools.sandbox.as_ref().is_some_and(|sandbox| sandbox.is_for_all),
            announced_mode: mode,
            denials: Vec::new(),
            allows_bypass: options.permissions.allows_bypass,
        };
        // A mode chosen for this run overrides the saved one.
        if let Some(saved) = saved_mode.filter(|_| !options.permissions.is_mode_chosen) {
            checker.set_mode(saved);
        }
        if options.permissions.begins_planning {
            checker.mode = PermissionMode::Plan;
        }
        checker.announced_mode = checker.mode;
        checker
    }

    /// Allows reading and writing in the directory for temporary files.
    pub(crate) fn allow_scratchpad(&mut self, folder: Option<&str>) {
        let Some(folder) = folder else { return };
        for tool in ["Read", "Edit"] {
            // A path that is no pattern asks as usual.
            if let Ok(rule) = format!("{tool}(/{folder}/**)").parse() {
                self.rules.allow_for_session(rule);
            }
        }
    }

    /// Starts or ends planning.
    pub(crate) fn set_mode(&mut self, name: &str) {
        self.mode = match name.parse() {
            Ok(PermissionMode::Plan) => PermissionMode::Plan,
            // Planning ends with the user's choice, never with more.
            _ => self.usual,
        };
    }

    /// Sets the mode chosen by the user.
    pub(crate) fn choose_mode(&mut self, mode: PermissionMode) {
        if mode == PermissionMode::Bypass && !self.allows_bypass {
            return;
        }
        self.mode = mode;
        // Planning returns to the previous mode.
        if mode != PermissionMode::Plan {
            self.usual = mode;
        }
    }

    /// Returns whether a file may be read without asking.
    pub(crate) fn may_look(&self, target: &TargetPath, workspace: &Workspace) -> bool {
        self.judge_read(&[ToolAccess::Read(target.clone())], workspace) == Verdict::Allow
    }

    /// Verdict on reading files.
    pub(crate) fn judge_read(&self, needs: &[ToolAccess], workspace: &Workspace) -> Verdict {
        let sandbox = sandbox_limits(&self.shell, false);
        judge_access("Read", needs, self.mode, &self.rules, (self.own.clone(), sandbox), workspace)
    }

    pub(crate) fn judge(
        &mut self,
        call: &ToolCall,
        tools: &[Box<dyn ToolHandler>],
        workspace: &Workspace,
        hooks: &HookRunner,
        cancel: &CancelToken,
    ) -> CallJudgement {
        let needs = match pal_tools::find_tool(tools, &call.name) {
            _ if is_inner(&call.name) => Ok(Vec::new()),
            Some(tool) => tool.required_access(&ToolInput(call.input.clone()), workspace),
            None => Err(format!("there is no tool of the name `{}`", call.name)),
        };
        let own = self.own.clone();
        // Conditions of hooks use the same rules.
        let wanted = needs.clone().unwrap_or_default();
        let fits = |rule: &str| fits(rule, &call.name, &wanted, own.clone(), workspace);
        let spoken = hooks.tool_wanted(call, &fits, self.mode, cancel);
        // A cancelled hook has not agreed to anything.
        if cancel.is_cancelled() {
            let ruling = CallRuling::Refused(String::from("Not carried out: interrupted by the user."));
            let confinement = Confinement::whole(SandboxLevel::ReadOnly);
            return CallJudgement { ruling, denial: None, notes: Vec::new(), needs: Vec::new(), confinement };
        }
        let input = spoken.input.clone().unwrap_or_else(|| call.input.clone());
        if let Some(why) = &spoken.stop {
            let denial = Some(denial(call, &input, why, None));
            return CallJudgement {
                ruling: CallRuling::Stop(why.clone()),
                denial,
                notes: spoken.notes,
                needs: Vec::new(),
                confinement: Confinement::whole(SandboxLevel::ReadOnly),
            };
        }
        // A changed input needs other access.
        let needs = match (&spoken.input, pal_tools::find_tool(tools, &call.name)) {
            (Some(input), Some(tool)) => tool.required_access(&ToolInput(input.clone()), workspace),
            _ => needs,
        };
        // Whether rules and mode alone allow it.
        let mut is_unasked = true;
        let verdict = match (&spoken.denied, &needs) {
            // A session in plan mode ends with a plan.
            (None, Ok(_)) if call.name == EXIT_PLAN && self.usual == PermissionMode::Plan => Verdict::Deny {
                why: String::from("the user wants a plan only: end with the plan as your answer"),
            },
            (Some(why), _) | (None, Err(why)) => Verdict::Deny { why: why.clone() },
            (None, Ok(needs)) if self.is_beyond_memory(call, needs, workspace) => {
                Verdict::Deny { why: format!("this agent has {} for its memories alone", call.name) }
            }
            (None, Ok(needs)) => {
                let judged = self.judged(call, needs, workspace);
                is_unasked = judged == Verdict::Allow;
                let verdict = self.plan_verdict(call, heard(judged, &spoken), &spoken);
                question_verdict(call, verdict, &spoken)
            }
        };
        let mut needs = needs.unwrap_or_default();
        let confinement = self.confinement(&needs, is_unasked, workspace);
        let marks = match &verdict {
            Verdict::Ask { .. } => consent_marks(&needs, self.own.clone(), workspace),
            _ => Vec::new(),
        };
        // The user is not asked about a change that cannot be made.
        let obstacle = match &verdict {
            Verdict::Ask { .. } => self.find_obstacle(call, &input, &needs, tools, workspace),
            _ => None,
        };
        let (mut ruling, mut denial) = match obstacle {
            Some(why) => (CallRuling::Refused(why), None),
            None => {
                let shown = (marks, workspace.directory().display().to_string());
                self.ruling(call, input.clone(), verdict, spoken.input.is_some(), shown)
            }
        };
        if let CallRuling::Allowed { input: Some(approved) } = &ruling
            && *approved != input
            && let Some(tool) = pal_tools::find_tool(tools, &call.name)
        {
            match self.check_approved_input(call, tool, approved, workspace) {
                Ok(of_approved) => needs = of_approved,
                Err(why) => {
                    denial = Some(self::denial(call, approved, &why, None));
                    ruling = CallRuling::Refused(format!("Not carried out: {why}"));
                }
            }
        }
        CallJudgement { ruling, denial, notes: spoken.notes, needs, confinement }
    }

    /// Reason for which an allowed call would fail. Only files that the model may read are looked into.
    fn find_obstacle(
        &self,
        call: &ToolCall,
        input: &SharedText,
        needs: &[ToolAccess],
        tools: &[Box<dyn ToolHandler>],
        workspace: &Workspace,
    ) -> Option<String> {
        let may_look = |need: &ToolAccess| match need {
            ToolAccess::Read(target) | ToolAccess::Write(target) => self.may_look(target, workspace),
            ToolAccess::Run(_) | ToolAccess::Fetch(_) | ToolAccess::Use | ToolAccess::Named(_) => true,
        };
        let tool = pal_tools::find_tool(tools, &call.name).filter(|_| needs.iter().all(may_look))?;
        tool.check_feasible(&ToolInput(input.clone()), workspace).err()
    }

    fn judged(&self, call: &ToolCall, needs: &[ToolAccess], workspace: &Workspace) -> Verdict {
        if self.are_about_notes(needs) {
            return by_rules_alone(&call.name, needs, &self.rules, workspace);
        }
        judge_access(
            &call.name,
            needs,
            self.mode,
            &self.rules,
            (self.own.clone(), self.sandbox(needs)),
            workspace,
        )
    }

    fn sandbox(&self, needs: &[ToolAccess]) -> SandboxLimits {
        sandbox_limits(&self.shell, needs.iter().any(|need| matches!(need, ToolAccess::Run(_))))
    }

    /// Sandbox of a command: anything not explicitly allowed runs confined.
    fn confinement(&self, needs: &[ToolAccess], is_unasked: bool, workspace: &Workspace) -> Confinement {
        let command = needs.iter().find_map(|need| match need {
            ToolAccess::Run(command) => Some(command),
            _ => None,
        });
        let confinement = match command {
            Some(command) if is_unasked => {
                with_permission_context(self.own.clone(), self.sandbox(needs), workspace, |ground| {
                    confine_command(command, self.mode, &self.rules, ground)
                })
            }
            _ => Confinement::whole(SandboxLevel::Full),
        };
        match self.confines_all && confinement.level > SandboxLevel::WorkspaceWrite {
            true => Confinement::whole(SandboxLevel::WorkspaceWrite),
            false => confinement,
        }
    }

    /// Returns whether a memory-only tool is used for something else.
    fn is_beyond_memory(&self, call: &ToolCall, needs: &[ToolAccess], workspace: &Workspace) -> bool {
        let folder = workspace.recorded_folder.as_ref().map(|keeper| keeper.folder());
        let is_memory = |need: &ToolAccess| match need {
            ToolAccess::Read(target) | ToolAccess::Write(target) => {
                target.real.parent() == folder || Some(target.real.as_path()) == folder
            }
            _ => false,
        };
        self.memory_tools.contains(&call.name) && !needs.iter().all(is_memory)
    }

    /// Returns whether a call accesses only the session notes.
    fn are_about_notes(&self, needs: &[ToolAccess]) -> bool {
        let is_notes = |need: &ToolAccess| match need {
            ToolAccess::Read(target) | ToolAccess::Write(target) => Some(&target.real) == self.notes.as_ref(),
            ToolAccess::Run(_) | ToolAccess::Fetch(_) | ToolAccess::Use | ToolAccess::Named(_) => false,
        };
        self.notes.is_some() && !needs.is_empty() && needs.iter().all(is_notes)
    }

    /// A plan needs approval of the user or the lead. No rule approves it, and for a teammate no hook.
    fn plan_verdict(&self, call: &ToolCall, verdict: Verdict, spoken: &HookRuling) -> Verdict {
        let is_approved = spoken.allowed && self.agent.is_none();
        if call.name != EXIT_PLAN || self.mode != PermissionMode::Plan || self.asking.is_none() || is_approved
        {
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
        call: &ToolCall,
        input: SharedText,
        verdict: Verdict,
        is_changed: bool,
        shown: (Vec<ConsentMark>, String),
    ) -> (CallRuling, Option<ToolDenial>) {
        match verdict {
            Verdict::Allow => (CallRuling::Allowed { input: is_changed.then_some(input) }, None),
            Verdict::Deny { why } => {
                let denial = denial(call, &input, &why, None);
                (CallRuling::Refused(format!("Not carried out: {why}")), Some(denial))
            }
            Verdict::Ask { why, rule } => self.asked(call, input, (why, rule, shown), is_changed),
        }
    }

    /// Asks a person; if there is none, refuses with the rule that would allow it.
    fn asked(
        &mut self,
        call: &ToolCall,
        input: SharedText,
        (why, rule, (marks, directory)): (String, String, (Vec<ConsentMark>, String)),
        is_changed: bool,
    ) -> (CallRuling, Option<ToolDenial>) {
        let agent = self.agent.clone();
        let (id, tool) = (call.id.clone(), call.name.to_string());
        // A multi-line script never repeats verbatim, so no rule is offered for it.
        let offered = if rule.contains('\n') { String::new() } else { rule.clone() };
        let input_text = input.to_string();
        let asked = PermissionQuestion {
            agent,
            call: id,
            tool,
            input: input_text,
            why,
            rule: offered,
            marks,
            directory,
        };
        let answer = self.asking.as_ref().map_or(PermissionAnswer::Unavailable, |asking| asking(&asked));
        match answer {
            answer if call.name == ASK_USER_QUESTION => match answered_input(&input, answer) {
                Ok(answered) => (CallRuling::Allowed { input: Some(answered) }, None),
                Err(words) => {
                    let denial = denial(call, &input, "the questions were not answered", None);
                    (CallRuling::Refused(words), Some(denial))
                }
            },
            PermissionAnswer::Once => (CallRuling::Allowed { input: is_changed.then_some(input) }, None),
            PermissionAnswer::Session => {
                if let Ok(rule) = asked.rule.parse() {
                    self.rules.allow_for_session(rule);
                }
                (CallRuling::Allowed { input: is_changed.then_some(input) }, None)
            }
            PermissionAnswer::Approved(approval) => {
                self.apply_approval(&approval);
                let changed = approval.input.map(SharedText::from).filter(|changed| *changed != input);
                let changed = changed.or_else(|| is_changed.then_some(input));
                (CallRuling::Allowed { input: changed }, None)
            }
            PermissionAnswer::No(words) => {
                let denial = denial(call, &input, &asked.why, Some(&rule));
                let words = words.map_or(String::new(), |words| format!(" They say: {words}"));
                (
                    CallRuling::Refused(format!("Not carried out: the user did not want it.{words}")),
                    Some(denial),
                )
            }
            PermissionAnswer::Refused(words) => {
                let denial = denial(call, &input, &asked.why, None);
                (CallRuling::Refused(format!("Not carried out: {words}")), Some(denial))
            }
            // Only questions have answers.
            PermissionAnswer::Answered(_) | PermissionAnswer::Unavailable => {
                not_asked(call, &input, &asked.why, &rule)
            }
        }
    }
}

impl PermissionChecker {
    /// Applies the rules and the mode of an approval. What does not parse is ignored: it allows nothing.
    fn apply_approval(&mut self, approval: &CallApproval) {
        for rule in approval.rules.iter().filter_map(|rule| rule.parse().ok()) {
            self.rules.allow_for_session(rule);
        }
        let sourced = |rule: &String| {
            Some(SourcedRule { rule: rule.parse().ok()?, origin: String::from("the driving program") })
        };
        self.rules.deny.extend(approval.denied.iter().filter_map(sourced));
        self.rules.ask.extend(approval.asked.iter().filter_map(sourced));
        if let Some(mode) = approval.mode.as_ref().and_then(|mode| mode.parse().ok()) {
            self.choose_mode(mode);
        }
    }

    /// Checks the input that a program gave a call when it approved it: deny rules hold for it, and it needs access of its
    /// own.
    fn check_approved_input(
        &self,
        call: &ToolCall,
        tool: &dyn ToolHandler,
        input: &SharedText,
        workspace: &Workspace,
    ) -> Result<Vec<ToolAccess>, String> {
        let needs = tool.required_access(&ToolInput(input.clone()), workspace)?;
        match self.judged(call, &needs, workspace) {
            Verdict::Deny { why } => Err(why),
            Verdict::Allow | Verdict::Ask { .. } => Ok(needs),
        }
    }
}

/// Combines a verdict with the answers of hooks.
fn heard(verdict: Verdict, spoken: &HookRuling) -> Verdict {
    match verdict {
        // A hook may answer for a person or require one, but cannot lift a denial.
        Verdict::Ask { .. } if spoken.allowed => Verdict::Allow,
        // No rule answers a question of a hook.
        Verdict::Allow if let Some(why) = &spoken.asks => {
            Verdict::Ask { why: why.clone(), rule: String::new() }
        }
        other => other,
    }
}

/// Questions go to the user, whatever rules and mode allow, unless a hook has answered them.
fn question_verdict(call: &ToolCall, verdict: Verdict, spoken: &HookRuling) -> Verdict {
    let is_answered = spoken.input.as_ref().is_some_and(has_answers);
    match verdict {
        Verdict::Allow if call.name == ASK_USER_QUESTION && !is_answered => {
            Verdict::Ask { why: String::from("the agent has a question"), rule: String::new() }
        }
        other => other,
    }
}

/// Refusal of a call that needs a person when none is there.
fn not_asked(call: &ToolCall, input: &SharedText, why: &str, rule: &str) -> (CallRuling, Option<ToolDenial>) {
    let rule = Some(rule).filter(|rule| !rule.is_empty());
    let way = rule.map_or(String::new(), |rule| {
        format!(
            " The rule `{rule}` under permissions.allow in the settings, or --allowed-tools '{rule}', would allow it."
        )
    });
    let words = format!(
        "Not carried out: {why}, and no user is available to ask.{way} Do not try the same by another route: do what can be \
         done without it, and say in your last message what it was needed for."
    );
    (CallRuling::Refused(words), Some(denial(call, input, why, rule)))
}

/// Parts of a call to highlight in a permission question.
fn consent_marks(needs: &[ToolAccess], own: Option<PathBuf>, workspace: &Workspace) -> Vec<ConsentMark> {
    with_permission_context(own, SandboxLimits::default(), workspace, |ground| {
        needs.iter().flat_map(|need| explain_access(need, ground)).map(consent_mark).collect()
    })
}

/// Verdict by deny and ask rules only.
fn by_rules_alone(tool: &str, needs: &[ToolAccess], rules: &RuleSet, workspace: &Workspace) -> Verdict {
    let resolve = |named: &str, directory: &Path| workspace.resolve_in(named, directory).real;
    let ground = PermissionContext {
        roots: workspace.roots.clone(),
        home: workspace.home.clone(),
        // Nothing of the program is protected here; an empty directory stands in for the session.
        session: workspace.session.join("nothing"),
        own: None,
        memory: None,
        directory: workspace.directory(),
        resolve: &resolve,
        is_folder: &Path::is_dir,
        sandbox: SandboxLimits { state: SandboxState::Off, ..SandboxLimits::default() },
    };
    authorize(&PermissionRequest { tool, needs, mode: PermissionMode::Bypass }, rules, &ground)
}

/// Returns whether a hook's condition may match a call. A superfluous run of a guard does no harm.
fn fits(rule: &str, tool: &str, needs: &[ToolAccess], own: Option<PathBuf>, workspace: &Workspace) -> bool {
    let Ok(rule) = rule.parse() else { return false };
    with_permission_context(own, SandboxLimits::default(), workspace, |ground| {
        may_match(&rule, tool, needs, ground)
    })
}

fn denial(call: &ToolCall, input: &SharedText, reason: &str, rule: Option<&str>) -> ToolDenial {
    ToolDenial {
        tool_name: call.name.clone(),
        tool_use_id: call.id.as_str().to_owned(),
        tool_input: input.to_string(),
        reason: reason.to_owned(),
        rule: rule.map(str::to_owned),
    }
}

/// Describes a part of a command that the person who is asked should look at.
fn consent_mark(mark: CommandMark) -> ConsentMark {
    ConsentMark {
        start: mark.range.start,
        end: mark.range.end,
        kind: mark.kind.name().to_owned(),
        is_dangerous: mark.kind.is_dangerous(),
        sentence: mark.sentence,
    }
}
