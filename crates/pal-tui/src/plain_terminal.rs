//! The conversation line by line without redraws, for screen readers and simple terminals. Questions are answered by typed
//! lines, and finished lines are printed once.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::mpsc;

use pal_events::{AgentEvent, PermissionQuestion, QuestionAnswer, UserQuestion};
use ratatui_core::text::Line;

use crate::ansi;
use crate::attachments::content;
use crate::completion;
use crate::consent_document::{PriorContent, consent_document, rule_lines};
use crate::permission_dialog::plan_of;
use crate::plain_questions::{instructions, parse_choice, question_lines};
use crate::status_line::StatusLine;
use crate::theme::Theme;
use crate::transcript::Transcript;
use crate::ui_events::{
    ActiveSession, ColdTurnAnswer, CommandHandler, Consent, PickerChoice, REMEMBER, SlashOutcome,
    TerminalOptions, UiChannels, UiEvent, UserAction, parse_memory, parse_shell,
};

/// Maximum number of listed choices.
const CHOICES_MAX: usize = 20;

/// A typed line or an event.
enum PlainEvent {
    Typed(String),
    Event(UiEvent),
    Closed,
}

/// Runs the plain terminal until the user exits or the agent's thread ends; returns the reason in the latter case.
pub fn run_plain(start: TerminalOptions, channels: UiChannels) -> io::Result<Option<String>> {
    let (sender, events) = mpsc::channel();
    let typed = sender.clone();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if typed.send(PlainEvent::Typed(line)).is_err() {
                return;
            }
        }
        let _ = typed.send(PlainEvent::Closed);
    });
    std::thread::spawn(move || {
        for event in channels.events {
            if sender.send(PlainEvent::Event(event)).is_err() {
                return;
            }
        }
    });
    let (prompt, command) = (start.prompt, start.command);
    let mut plain = PlainSession {
        out: io::stdout(),
        transcript: Transcript::new(width(), Theme::default()).with_typed_hints(),
        status: StatusLine::default(),
        directory: start.directory,
        commands: start.commands,
        actions: channels.actions,
        session: None,
        questions: Vec::new(),
        progress: QuestionProgress::default(),
        choices: Vec::new(),
        pending_actions: 0,
        is_leaving: false,
        is_closed: false,
    };
    command.iter().for_each(|command| plain.command(command));
    prompt.iter().for_each(|prompt| plain.typed(prompt));
    plain.show()?;
    plain.print_prompt_sign()?;
    let mut queue = InputQueue { is_piped: !io::stdin().is_terminal(), waiting: VecDeque::new() };
    for event in events {
        match event {
            PlainEvent::Event(UiEvent::Closed(why)) => {
                plain.show()?;
                return Ok(why);
            }
            PlainEvent::Event(event) => plain.handle_event(event),
            typed => queue.waiting.push_back(typed),
        }
        while let Some(typed) = queue.take(plain.awaits_input()) {
            match typed {
                PlainEvent::Typed(line) => plain.typed(&line),
                _ => plain.closed(),
            }
        }
        plain.show()?;
        plain.print_prompt_sign()?;
    }
    Ok(None)
}

/// Typed lines that are not handled yet. A person types when there is something to answer; the lines of a pipe are all
/// there at once, so each waits for the answer to the one before it.
struct InputQueue {
    is_piped: bool,
    waiting: VecDeque<PlainEvent>,
}

impl InputQueue {
    /// Takes the next line if it is its turn. `/stop` is for the work under way.
    fn take(&mut self, is_awaited: bool) -> Option<PlainEvent> {
        let is_stop = |event: &PlainEvent| matches!(event, PlainEvent::Typed(line) if line.trim() == "/stop");
        if is_awaited || !self.is_piped {
            return self.waiting.pop_front();
        }
        let at = self.waiting.iter().position(is_stop)?;
        self.waiting.remove(at)
    }
}

/// Width of the terminal, in columns.
fn width() -> usize {
    crossterm::terminal::size().map_or(80, |(width, _)| usize::from(width).max(20))
}

/// Lines of a question per page; they stay on screen with the typed line.
fn page_rows() -> usize {
    crossterm::terminal::size().map_or(20, |(_, height)| usize::from(height).saturating_sub(4).max(5))
}

/// Typed answer to a permission question.
#[derive(Clone, PartialEq, Eq, Debug)]
enum PlainAnswer {
    Once,
    Always,
    /// An empty line.
    ReadOn,
    /// Any other line; the text after its first word is the reason.
    No(Option<String>),
}

fn parse_answer(line: &str) -> PlainAnswer {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("", "") => PlainAnswer::ReadOn,
        ("y" | "yes", _) => PlainAnswer::Once,
        ("a" | "always", _) => PlainAnswer::Always,
        (_, why) => PlainAnswer::No(Some(why.trim().to_owned()).filter(|why| !why.is_empty())),
    }
}

/// Line that ends a typed plan.
const END_OF_PLAN: &str = ".";

/// Instructions for answering a plan.
const PLAN_ANSWERS: &str = "Type y to approve, a to approve all edits too, e to edit, or n and why not.";

/// Progress of an open question.
#[derive(Default)]
struct QuestionProgress {
    /// Answers so far, if it asks several things.
    answers: Vec<QuestionAnswer>,
    /// Lines that are not printed yet.
    unprinted: Vec<Line<'static>>,
    /// Lines of a new plan while it is typed.
    typed_plan: Option<Vec<String>>,
    /// New plan, if it was changed.
    changed_plan: Option<String>,
}

/// Typed answer to a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
enum PlanAnswer {
    Approve {
        accepts_edits: bool,
    },
    Edit,
    /// An empty line.
    ReadOn,
    /// Any other line; the text after its first word is the reason.
    Reject(Option<String>),
}

fn parse_plan_answer(line: &str) -> PlanAnswer {
    match line {
        "e" | "edit" => PlanAnswer::Edit,
        line => match parse_answer(line) {
            PlainAnswer::Once => PlanAnswer::Approve { accepts_edits: false },
            PlainAnswer::Always => PlanAnswer::Approve { accepts_edits: true },
            PlainAnswer::ReadOn => PlanAnswer::ReadOn,
            PlainAnswer::No(why) => PlanAnswer::Reject(why),
        },
    }
}

/// Instructions for answering a question.
fn answers(has_rule: bool) -> String {
    let always = if has_rule { ", a for always in this project (the rule above)" } else { "" };
    format!("Type y for once{always}, or n and why not.")
}

struct PlainSession {
    out: io::Stdout,
    transcript: Transcript,
    status: StatusLine,
    directory: std::path::PathBuf,
    commands: Box<dyn CommandHandler>,
    actions: mpsc::Sender<UserAction>,
    session: Option<ActiveSession>,
    questions: Vec<(PermissionQuestion, mpsc::Sender<Consent>)>,
    /// Progress of the first of them.
    progress: QuestionProgress,
    choices: Vec<PickerChoice>,
    pending_actions: usize,
    is_leaving: bool,
    /// Standard input is closed: questions are refused.
    is_closed: bool,
}

impl PlainSession {
    /// Prints finished lines.
    fn show(&mut self) -> io::Result<()> {
        for line in self.transcript.take_finished() {
            writeln!(self.out, "{}", line.to_string().trim_end())?;
        }
        self.out.flush()
    }

    /// Returns whether a line would be a prompt or an answer, not a message to the running work.
    fn awaits_input(&self) -> bool {
        self.pending_actions == 0 || !self.questions.is_empty() || !self.choices.is_empty()
    }

    /// Prints the prompt sign when idle.
    fn print_prompt_sign(&mut self) -> io::Result<()> {
        if self.pending_actions == 0 && self.questions.is_empty() && self.choices.is_empty() {
            write!(self.out, "> ")?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn typed(&mut self, line: &str) {
        if let Some(lines) = &mut self.progress.typed_plan {
            match line.trim() {
                END_OF_PLAN => return self.end_plan_edit(),
                "/cancel" => {
                    self.progress.typed_plan = None;
                    return self.transcript.note(&format!("the plan stays as it is. {PLAN_ANSWERS}"));
                }
                _ => return lines.push(line.to_owned()),
            }
        }
        if !self.questions.is_empty() {
            return self.answered(line.trim());
        }
        if !self.choices.is_empty() {
            return self.chosen(line.trim());
        }
        match (line.trim().strip_prefix('/'), parse_memory(line)) {
            _ if line.trim().is_empty() => {}
            _ if let Some(command) = parse_shell(line) => {
                self.transcript.start_shell(command);
                self.send_action(UserAction::RunShell(command.to_owned()));
            }
            (Some(command), _) => self.command(command),
            (None, Some(text)) => self.command(&format!("{REMEMBER} {text}")),
            (None, None) => self.say(line),
        }
    }

    fn say(&mut self, sent: &str) {
        let (content, problems) = content(sent, &[], &self.directory);
        problems.iter().for_each(|problem| self.transcript.error(problem));
        let is_steering = self.pending_actions > 0 && self.transcript.is_working();
        // The terminal already shows the typed line.
        self.transcript.add_prompt("");
        match &self.session {
            Some(session) if is_steering => session.handle.steer(content),
            _ => self.send_action(UserAction::Prompt(content)),
        }
    }

    fn answered(&mut self, line: &str) {
        if let Some(asked) = self.questions.first().and_then(|(asked, _)| asked.user_questions()) {
            return self.answer_question(&asked, line);
        }
        if self.questions.first().is_some_and(|(asked, _)| plan_of(asked).is_some()) {
            return self.answer_plan(line);
        }
        let has_rule = self.questions.first().is_some_and(|(asked, _)| !asked.rule.is_empty());
        let consent = match (parse_answer(line), self.progress.unprinted.len()) {
            (PlainAnswer::ReadOn, 1..) => return self.print_page(),
            (PlainAnswer::Once | PlainAnswer::Always, left @ 1..) => {
                return self.transcript.note(&format!(
                    "not allowed yet: {left} more lines were not printed; press Enter to read on, or type n to refuse"
                ));
            }
            (PlainAnswer::ReadOn, 0) => return self.transcript.note(&answers(has_rule)),
            (PlainAnswer::Always, 0) if !has_rule => {
                return self.transcript.note(&format!("no rule covers this call. {}", answers(false)));
            }
            (PlainAnswer::Once, 0) => Consent::Once,
            (PlainAnswer::Always, 0) => Consent::Project,
            (PlainAnswer::No(why), _) => Consent::No(why),
        };
        let (_, answer) = self.questions.remove(0);
        self.progress.unprinted.clear();
        // The asker may have been stopped.
        let _ = answer.send(consent);
        self.ask_next();
    }

    /// Takes the answer to a plan: approve it, approve it with all edits, edit it, or reject it with a reason.
    fn answer_plan(&mut self, line: &str) {
        let left = self.progress.unprinted.len();
        let changed = self.progress.changed_plan.clone();
        let consent = match (parse_plan_answer(line), left) {
            (PlanAnswer::ReadOn, 1..) => return self.print_page(),
            (PlanAnswer::ReadOn, 0) => return self.transcript.note(PLAN_ANSWERS),
            (PlanAnswer::Approve { .. }, 1..) => {
                return self.transcript.note(&format!(
                    "not approved yet: {left} more lines were not printed; press Enter to read on, or type n to reject"
                ));
            }
            (PlanAnswer::Approve { accepts_edits }, 0) => Consent::Plan { changed, accepts_edits },
            (PlanAnswer::Edit, _) => {
                self.progress.typed_plan = Some(Vec::new());
                return self.transcript.note(&format!(
                    "Type the new plan, line by line. A line with a single `{END_OF_PLAN}` ends it; /cancel keeps the plan."
                ));
            }
            (PlanAnswer::Reject(why), _) => Consent::No(why),
        };
        let (_, answer) = self.questions.remove(0);
        self.progress = QuestionProgress::default();
        // The asker may have been stopped.
        let _ = answer.send(consent);
        self.ask_next();
    }

    /// Takes the typed plan, which is printed and approved like the first one.
    fn end_plan_edit(&mut self) {
        let text = self.progress.typed_plan.take().unwrap_or_default().join("\n");
        if text.trim().is_empty() {
            return self
                .transcript
                .note(&format!("nothing was typed: the plan stays as it is. {PLAN_ANSWERS}"));
        }
        if let Some((asked, _)) = self.questions.first_mut() {
            asked.input = serde_json::json!({ "plan": text }).to_string();
        }
        self.progress.changed_plan = Some(text);
        self.ask_next();
    }

    /// Takes the answer to the next of several questions; the last one sends them all.
    fn answer_question(&mut self, asked: &[UserQuestion], line: &str) {
        if line == "/stop" {
            return self.stop();
        }
        let Some(question) = asked.get(self.progress.answers.len()) else { return };
        let Some(answers) = parse_choice(line, question) else {
            return self.transcript.note(instructions(question));
        };
        self.progress.answers.push(QuestionAnswer { question: question.question.clone(), answers });
        if self.progress.answers.len() == asked.len() {
            let (_, answer) = self.questions.remove(0);
            // The asker may have been stopped.
            let _ = answer.send(Consent::Answers(std::mem::take(&mut self.progress.answers)));
        }
        self.ask_next();
    }

    fn chosen(&mut self, line: &str) {
        let choices = std::mem::take(&mut self.choices);
        let number: usize = line.parse().unwrap_or(0);
        match number.checked_sub(1).and_then(|at| choices.get(at)) {
            Some(PickerChoice { command: (name, arguments), .. }) => {
                self.command(&format!("{name} {arguments}"))
            }
            None => self.transcript.note("nothing was chosen"),
        }
    }

    fn command(&mut self, typed: &str) {
        let (name, arguments) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
        match name {
            "stop" => return self.stop(),
            "expand" => return self.transcript.unfold(),
            _ => {}
        }
        let log = self.session.as_ref().map(|session| session.log.clone());
        match self.commands.run(name, arguments.trim(), log.as_deref()) {
            SlashOutcome::Print(text) => self.transcript.add(ansi::lines(&text)),
            SlashOutcome::Notes(lines) => lines.iter().for_each(|line| self.transcript.note(line)),
            // Nothing is colored here, and lines are typed in the terminal's own way.
            SlashOutcome::Restyle { text, .. } => self.transcript.add(ansi::lines(&text)),
            SlashOutcome::Leave => self.leave(),
            SlashOutcome::NeedsSession => {
                self.send_action(UserAction::Command {
                    name: name.to_owned(),
                    arguments: arguments.trim().to_owned(),
                });
            }
            SlashOutcome::Prompt(prompt) => self.say(&prompt),
            SlashOutcome::Pick { title, choices, preface } => {
                self.transcript.add(ansi::lines(&preface));
                self.pick(&title, choices);
            }
            SlashOutcome::Failed(why) => self.transcript.error(&why),
            SlashOutcome::Unknown => {
                let list = self.commands.list();
                let known: Vec<&str> = list.iter().map(|command| command.name.as_str()).collect();
                self.transcript.error(&completion::unknown_command(name, &known));
            }
        }
    }

    /// Interrupts the work and refuses open questions.
    fn stop(&mut self) {
        self.refuse_questions();
        if let Some(session) = &self.session {
            session.handle.interrupt();
        }
    }

    /// Handles the end of input: a closed terminal exits at once, piped input is worked off first.
    fn closed(&mut self) {
        self.is_closed = true;
        self.refuse_questions();
        if io::stdin().is_terminal() {
            return self.leave();
        }
        self.is_leaving = true;
        self.send_action(UserAction::Leave);
    }

    /// Refuses all open questions by dropping them.
    fn refuse_questions(&mut self) {
        self.questions.clear();
        self.progress = QuestionProgress::default();
    }

    fn leave(&mut self) {
        self.is_leaving = true;
        self.stop();
        self.send_action(UserAction::Leave);
    }

    fn pick(&mut self, title: &str, choices: Vec<PickerChoice>) {
        let line = |(at, choice): (usize, &PickerChoice)| {
            Line::from(format!("{}: {} {}", at + 1, choice.label, choice.detail))
        };
        let mut lines = vec![Line::from(format!("{title}:"))];
        lines.extend(choices.iter().take(CHOICES_MAX).enumerate().map(line));
        lines.push(Line::from("Type a number, or press Enter to cancel."));
        self.transcript.add(lines);
        self.choices = choices;
    }

    fn handle_event(&mut self, ui_event: UiEvent) {
        match ui_event {
            UiEvent::Event(event) => self.session_event(&event),
            UiEvent::SessionReady(session) => {
                self.status.open_session(&session);
                session.recent_entries.iter().for_each(|entry| self.transcript.recall(entry));
                self.session = Some(*session);
            }
            // Dropping the sender refuses the call.
            UiEvent::PermissionAsked(..) if self.is_closed => {}
            UiEvent::PermissionAsked(asked, answer) => {
                self.questions.push((asked, answer));
                if self.questions.len() == 1 {
                    self.ask_next();
                }
            }
            UiEvent::ContextMeasured(tokens) => self.status.tokens = tokens,
            UiEvent::CacheMeasured(cache) => self.status.cache = cache,
            UiEvent::CacheKept => self.status.extend_cache(),
            // A line that waits for a key would not fit this terminal: the price is said, and the prompt sent.
            UiEvent::ColdTurnAsked(text, answer) => {
                self.transcript.note(&text);
                let _ = answer.send(ColdTurnAnswer::Send);
            }
            // Without an answer, the prompt is not sent.
            UiEvent::BudgetAsked(text, _) => {
                self.transcript
                    .error(&format!("{text}; raise `max_daily_cost_usd`, or go on tomorrow (UTC)"));
            }
            UiEvent::ShellPrinted(_) => {}
            UiEvent::ShellEnded { text, is_error } => self.transcript.end_shell(&text, is_error),
            UiEvent::CommandPrinted(text) => self.transcript.add(ansi::lines(&text)),
            UiEvent::Failed(why) => self.transcript.error(&why),
            UiEvent::FillPrompt(text) => self.transcript.note(&format!("the prompt was: {text}")),
            UiEvent::ActionDone => self.action_done(),
            UiEvent::MessageReceived => self.send_action(UserAction::RunQueuedMessages),
            UiEvent::Stop if self.pending_actions > 0 && !self.is_leaving => self.stop(),
            UiEvent::Stop | UiEvent::End => self.leave(),
            // There is no key that would accept a suggestion.
            UiEvent::PromptSuggested(_) | UiEvent::Resumed | UiEvent::Closed(_) => {}
        }
    }

    fn session_event(&mut self, event: &AgentEvent) {
        self.status.apply(event);
        match event {
            AgentEvent::SessionStarted(began) => {
                let line = format!("Palimpsest {}, {}, {}", began.version, began.model, began.cwd);
                self.transcript.add(vec![Line::from(line)]);
            }
            // Shows activity, since nothing is redrawn.
            AgentEvent::ToolStarted { name, .. } => self.transcript.note(&format!("{name} runs")),
            _ => {}
        }
        self.transcript.apply(event);
    }

    /// Prints the first question, page by page; it can be approved once all of it is printed.
    fn ask_next(&mut self) {
        let Some((asked, _)) = self.questions.first() else { return };
        if let Some(questions) = asked.user_questions() {
            let at = self.progress.answers.len();
            let lines =
                questions.get(at).map(|next| question_lines(next, (at + 1, questions.len()), width()));
            return self.transcript.add(lines.unwrap_or_default());
        }
        let mut lines = consent_document(asked, &PriorContent::read(asked), width(), Theme::default());
        let has_rule = !asked.rule.is_empty();
        if has_rule {
            lines.extend(rule_lines(asked, width(), Theme::default()));
        }
        lines.push(Line::from(match plan_of(asked) {
            Some(_) => PLAN_ANSWERS.to_owned(),
            None => answers(has_rule),
        }));
        self.progress.unprinted = lines;
        self.print_page();
    }

    fn print_page(&mut self) {
        let count = page_rows().min(self.progress.unprinted.len());
        let rest = self.progress.unprinted.split_off(count);
        let page = std::mem::replace(&mut self.progress.unprinted, rest);
        self.transcript.add(page);
        if !self.progress.unprinted.is_empty() {
            let left = self.progress.unprinted.len();
            self.transcript.note(&format!("{left} more lines: press Enter to read on, or type n to refuse"));
        }
    }

    fn action_done(&mut self) {
        self.pending_actions = self.pending_actions.saturating_sub(1);
        self.refuse_questions();
        let unread = self.session.as_ref().map_or(0, |session| session.handle.unread_messages());
        if self.pending_actions == 0 && unread > 0 {
            return self.send_action(UserAction::RunQueuedMessages);
        }
        let sentence = self.status.sentence();
        self.transcript.note(&sentence);
    }

    fn send_action(&mut self, action: UserAction) {
        self.pending_actions += 1;
        // The agent's thread may have ended.
        let _ = self.actions.send(action);
    }
}
