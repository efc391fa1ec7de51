//! The same conversation without redraws, line by line: for screen readers and for terminals that can do nothing else.
//! Whatever is asked is answered by a line, and what is finished is printed once.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::mpsc;

use pal_agent::{Asked, Event};
use ratatui_core::text::Line;

use crate::ansi;
use crate::attach::content;
use crate::consent_document::{PriorContent, consent_document, rule_lines};
use crate::status::Status;
use crate::theme::Theme;
use crate::told::{
    Choice, Commands, Consent, Facts, Origin, Outcome, REMEMBER, Start, Told, Wish, to_remember,
};
use crate::transcript::Transcript;

/// Choices that are listed.
const CHOICES_MAX: usize = 20;

/// What comes in.
enum Heard {
    Typed(String),
    Told(Told),
    Closed,
}

/// Talks with the user line by line until one of both sides leaves. The words that say why, if it was not the user.
pub fn run_plain(start: Start, origin: Origin) -> io::Result<Option<String>> {
    let (sender, heard) = mpsc::channel();
    let typed = sender.clone();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if typed.send(Heard::Typed(line)).is_err() {
                return;
            }
        }
        let _ = typed.send(Heard::Closed);
    });
    std::thread::spawn(move || {
        for told in origin.told {
            if sender.send(Heard::Told(told)).is_err() {
                return;
            }
        }
    });
    let (prompt, command) = (start.prompt, start.command);
    let mut plain = Plain {
        out: io::stdout(),
        transcript: Transcript::new(width(), Theme),
        status: Status::default(),
        directory: start.directory,
        commands: start.commands,
        wishes: origin.wishes,
        facts: None,
        questions: Vec::new(),
        unprinted: Vec::new(),
        choices: Vec::new(),
        outstanding: 0,
        is_leaving: false,
        is_closed: false,
    };
    command.iter().for_each(|command| plain.command(command));
    prompt.iter().for_each(|prompt| plain.typed(prompt));
    plain.show()?;
    plain.ask_on()?;
    for heard in heard {
        match heard {
            Heard::Typed(line) => plain.typed(&line),
            Heard::Closed => plain.closed(),
            Heard::Told(Told::Left(why)) => {
                plain.show()?;
                return Ok(why);
            }
            Heard::Told(told) => plain.told(told),
        }
        plain.show()?;
        plain.ask_on()?;
    }
    Ok(None)
}

/// Columns of the terminal.
fn width() -> usize {
    crossterm::terminal::size().map_or(80, |(width, _)| usize::from(width).max(20))
}

/// Lines of a question that are printed at once: they stay on screen with the line that is typed.
fn page_rows() -> usize {
    crossterm::terminal::size().map_or(20, |(_, height)| usize::from(height).saturating_sub(4).max(5))
}

/// What a typed line answers to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
enum PlainAnswer {
    Once,
    Always,
    /// Nothing was typed.
    ReadOn,
    /// Anything else refuses; what stands behind its first word is the reason.
    No(Option<String>),
}

fn read_answer(line: &str) -> PlainAnswer {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("", "") => PlainAnswer::ReadOn,
        ("y" | "yes", _) => PlainAnswer::Once,
        ("a" | "always", _) => PlainAnswer::Always,
        (_, why) => PlainAnswer::No(Some(why.trim().to_owned()).filter(|why| !why.is_empty())),
    }
}

/// How a question is answered.
fn answers(has_rule: bool) -> String {
    let always = if has_rule { ", a for always in this project (the rule above)" } else { "" };
    format!("Type y for once{always}, or n and why not.")
}

struct Plain {
    out: io::Stdout,
    transcript: Transcript,
    status: Status,
    directory: std::path::PathBuf,
    commands: Box<dyn Commands>,
    wishes: mpsc::Sender<Wish>,
    facts: Option<Facts>,
    questions: Vec<(Asked, mpsc::Sender<Consent>)>,
    /// Lines of the first question that were not printed yet.
    unprinted: Vec<Line<'static>>,
    choices: Vec<Choice>,
    outstanding: usize,
    is_leaving: bool,
    /// Whether nothing more is typed: nobody is there to be asked.
    is_closed: bool,
}

impl Plain {
    /// Prints what is finished.
    fn show(&mut self) -> io::Result<()> {
        for line in self.transcript.take_finished() {
            writeln!(self.out, "{}", line.to_string().trim_end())?;
        }
        self.out.flush()
    }

    /// A sign that a line is waited for, where nothing goes on.
    fn ask_on(&mut self) -> io::Result<()> {
        if self.outstanding == 0 && self.questions.is_empty() && self.choices.is_empty() {
            write!(self.out, "> ")?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn typed(&mut self, line: &str) {
        if !self.questions.is_empty() {
            return self.answered(line.trim());
        }
        if !self.choices.is_empty() {
            return self.chosen(line.trim());
        }
        match (line.trim().strip_prefix('/'), to_remember(line)) {
            _ if line.trim().is_empty() => {}
            (Some(command), _) => self.command(command),
            (None, Some(text)) => self.command(&format!("{REMEMBER} {text}")),
            (None, None) => self.say(line),
        }
    }

    fn say(&mut self, sent: &str) {
        let (content, problems) = content(sent, &[], &self.directory);
        problems.iter().for_each(|problem| self.transcript.complain(problem));
        let is_steering = self.outstanding > 0 && self.transcript.is_working();
        // What was typed stands there already.
        self.transcript.said("");
        match &self.facts {
            Some(facts) if is_steering => facts.handle.steer(content),
            _ => self.wish(Wish::Prompt(content)),
        }
    }

    fn answered(&mut self, line: &str) {
        let has_rule = self.questions.first().is_some_and(|(asked, _)| !asked.rule.is_empty());
        let consent = match (read_answer(line), self.unprinted.len()) {
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
        self.unprinted.clear();
        // Whoever asked may have been stopped meanwhile.
        let _ = answer.send(consent);
        self.ask_next();
    }

    fn chosen(&mut self, line: &str) {
        let choices = std::mem::take(&mut self.choices);
        let number: usize = line.parse().unwrap_or(0);
        match number.checked_sub(1).and_then(|at| choices.get(at)) {
            Some(Choice { command: (name, arguments), .. }) => self.command(&format!("{name} {arguments}")),
            None => self.transcript.note("nothing was chosen"),
        }
    }

    fn command(&mut self, typed: &str) {
        let (name, arguments) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
        match name {
            "exit" | "quit" => return self.leave(),
            "stop" => return self.stop(),
            "tasks" if arguments.trim().is_empty() => return self.tasks(),
            _ => {}
        }
        let log = self.facts.as_ref().map(|facts| facts.log.clone());
        match self.commands.run(name, arguments.trim(), log.as_deref()) {
            Outcome::Print(text) => self.transcript.add(ansi::lines(&text)),
            Outcome::Session => {
                self.wish(Wish::Command { name: name.to_owned(), arguments: arguments.trim().to_owned() });
            }
            Outcome::Prompt(prompt) => self.say(&prompt),
            Outcome::Pick { title, choices } => self.pick(&title, choices),
            Outcome::Failed(why) => self.transcript.complain(&why),
            Outcome::Unknown => {
                self.transcript.complain(&format!("there is no command /{name}; /help lists them"))
            }
        }
    }

    /// Stops what goes on. Whoever waits for an answer hears a no.
    fn stop(&mut self) {
        self.forget_questions();
        if let Some(facts) = &self.facts {
            facts.handle.interrupt();
        }
    }

    /// Nothing more is typed. Whoever hung up wants nothing any more; what came through a pipe is worked off.
    fn closed(&mut self) {
        self.is_closed = true;
        self.forget_questions();
        if io::stdin().is_terminal() {
            return self.leave();
        }
        self.is_leaving = true;
        self.wish(Wish::Leave);
    }

    /// Whoever asks hears a no.
    fn forget_questions(&mut self) {
        self.questions.clear();
        self.unprinted.clear();
    }

    fn leave(&mut self) {
        self.is_leaving = true;
        self.stop();
        self.wish(Wish::Leave);
    }

    fn tasks(&mut self) {
        let tasks = self.facts.as_ref().map_or(Vec::new(), |facts| (facts.background)());
        if tasks.is_empty() {
            self.transcript.note("nothing runs in the background");
        }
        tasks.iter().for_each(|task| self.transcript.note(task));
    }

    fn pick(&mut self, title: &str, choices: Vec<Choice>) {
        let line = |(at, choice): (usize, &Choice)| {
            Line::from(format!("{}: {} {}", at + 1, choice.label, choice.detail))
        };
        let mut lines = vec![Line::from(format!("{title}:"))];
        lines.extend(choices.iter().take(CHOICES_MAX).enumerate().map(line));
        lines.push(Line::from("Type a number, or nothing."));
        self.transcript.add(lines);
        self.choices = choices;
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Event(event) => self.event(&event),
            Told::Ready(facts) => {
                (self.status.tokens, self.status.goal, self.status.cost) =
                    (facts.tokens, facts.goal, facts.cost);
                facts.earlier.iter().for_each(|entry| self.transcript.recall(entry));
                self.facts = Some(*facts);
            }
            // Whoever waits for an answer that never comes hears a no.
            Told::Ask(..) if self.is_closed => {}
            Told::Ask(asked, answer) => {
                self.questions.push((asked, answer));
                if self.questions.len() == 1 {
                    self.ask_next();
                }
            }
            Told::Printed(text) => self.transcript.add(ansi::lines(&text)),
            Told::Failed(why) => self.transcript.complain(&why),
            Told::Fill(text) => self.transcript.note(&format!("the prompt was: {text}")),
            Told::Rests => self.rests(),
            Told::Called => self.wish(Wish::Heed),
            Told::Stop if self.outstanding > 0 && !self.is_leaving => self.stop(),
            Told::Stop | Told::End => self.leave(),
            Told::Continued | Told::Left(_) => {}
        }
    }

    fn event(&mut self, event: &Event) {
        self.status.apply(event);
        match event {
            Event::Began(began) => {
                let line = format!("Palimpsest {}, {}, {}", began.version, began.model, began.cwd);
                self.transcript.add(vec![Line::from(line)]);
            }
            // A sign of life where nothing is drawn.
            Event::ToolBegan { name, .. } => self.transcript.note(&format!("{name} runs")),
            _ => {}
        }
        self.transcript.apply(event);
    }

    /// Prints the first question whole, a screen at a time: it is answered when all of it was printed.
    fn ask_next(&mut self) {
        let Some((asked, _)) = self.questions.first() else { return };
        let mut lines = consent_document(asked, &PriorContent::read(asked), width(), Theme);
        let has_rule = !asked.rule.is_empty();
        if has_rule {
            lines.extend(rule_lines(asked, width(), Theme));
        }
        lines.push(Line::from(answers(has_rule)));
        self.unprinted = lines;
        self.print_page();
    }

    fn print_page(&mut self) {
        let count = page_rows().min(self.unprinted.len());
        let rest = self.unprinted.split_off(count);
        let page = std::mem::replace(&mut self.unprinted, rest);
        self.transcript.add(page);
        if !self.unprinted.is_empty() {
            let left = self.unprinted.len();
            self.transcript.note(&format!("{left} more lines: press Enter to read on, or type n to refuse"));
        }
    }

    fn rests(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.forget_questions();
        if self.outstanding == 0 && self.transcript.has_unheard() {
            return self.wish(Wish::Heed);
        }
        let sentence = self.status.sentence();
        self.transcript.note(&sentence);
    }

    fn wish(&mut self, wish: Wish) {
        self.outstanding += 1;
        // Whoever is gone has said so.
        let _ = self.wishes.send(wish);
    }
}
