#!/usr/bin/env python3
"""Records the sessions under testdata/sessions: `pal` works on a scratch project, against the simulator.

Usage: testdata/record.py PAL      (PAL: the program, such as target/release/pal)

Each session exercises something that tests rely on: long histories, parallel calls, compactions, pauses, resumes, forks.
The scratch project is made of this repository's own files. Recording again changes ids and times, so do it only when
the format of logs or the behaviour under test has changed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRATCH = pathlib.Path("/tmp/pal-testdata")
PROJECT = SCRATCH / "project"
OUT = ROOT / "testdata" / "sessions"
SOURCES = ["crates/pal-view/src", "crates/pal-store/src", "crates/pal-run/src", "docs", "CHANGELOG.md"]


def files(suffix):
    """Paths of the scratch project, in a fixed order."""
    return sorted(str(path) for path in PROJECT.rglob("*" + suffix))


def call(name, **arguments):
    return {"name": name, "input": arguments}


def read(path, **more):
    return call("Read", file_path=path, **more)


def bash(command):
    return call("Bash", command=command)


def turn(text, *calls, thinking=None):
    return {"text": text, "tools": list(calls), "thinking": thinking}


def script(turns):
    """The turns as a script of the simulator; a request for a summary is answered by the default."""
    out = ['order = "first-match"', ""]
    for item in turns:
        out.append("[[turn]]")
        out.append('when = { not = { any = [{ compaction = true }, { last_user_contains = "summary of the conversation" }] } }')
        out.append("text = " + json.dumps(item["text"]))
        if item["thinking"]:
            out.append("thinking = " + json.dumps(item["thinking"]))
        if item["tools"]:
            calls = []
            for tool in item["tools"]:
                pairs = ", ".join(f"{key} = {json.dumps(value)}" for key, value in tool["input"].items())
                calls.append(f'    {{ name = "{tool["name"]}", input = {{ {pairs} }} }},')
            out += ["tools = ["] + calls + ["]"]
        out.append("")
    return "\n".join(out)


def make_project():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    PROJECT.mkdir(parents=True)
    for source in SOURCES:
        target = PROJECT / source.replace("crates/", "")
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("*.svg"))
        else:
            shutil.copy(ROOT / source, target)
    (PROJECT / "README.md").write_text("# Scratch\n\nA project of copied files. `sh check.sh` checks it.\n")
    lines = "\n".join(
        f"for f in $(find . -name '*.rs' | sort); do echo \"test $f ... $(wc -l < $f) lines ok\"; done" for _ in range(3)
    )
    (PROJECT / "check.sh").write_text(f"{lines}\necho 'test result: FAILED. 1 failed'\nexit 1\n")


class Recorder:
    """One home and one simulator for each session."""

    def __init__(self, pal, name, turns, model="claude-opus-5-5", window=None):
        self.pal, self.name, self.model, self.ahead = pal, name, model, 0
        self.home = SCRATCH / ("home-" + name)
        self.home.mkdir(parents=True)
        self.home.chmod(0o700)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PAL_HOME": str(self.home),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": "any",
        }
        if window:
            self.environment["PAL_MAX_CONTEXT_TOKENS"] = str(window)
        # The script answers the conversation alone, not forks that work beside it.
        (self.home / "settings.toml").write_text("extraction = false\ndreaming = false\n")
        path = SCRATCH / (name + ".toml")
        path.write_text(script(turns))
        self.simulator = subprocess.Popen(
            [pal, "sim", "--port", "0", "--speed", "virtual", "--model-script", str(path), "--seed", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment,
        )
        for line in self.simulator.stdout:
            if "http://" in line:
                self.url = "http://" + line.split("http://")[1].split()[0].strip("`.,")
                break
        self.environment["ANTHROPIC_BASE_URL"] = self.url

    def prompt(self, text, *arguments):
        rules = "Read,Grep,Glob,Edit,Write,Bash"
        command = [self.pal, "-p", "--model", self.model, "--allowed-tools", rules, *arguments, text]
        environment = dict(self.environment, PAL_CLOCK_OFFSET_S=str(self.ahead))
        done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {done.stderr}\n{done.stdout}")
        return done.stdout

    def go_on(self, text, *arguments):
        return self.prompt(text, "--continue", *arguments)

    def pause(self, seconds):
        self.ahead += seconds
        body = json.dumps({"advance_seconds": seconds}).encode()
        urllib.request.urlopen(urllib.request.Request(self.url + "/sim/clock", data=body, method="POST")).read()

    def run(self, *arguments):
        command = [self.pal, *arguments]
        subprocess.run(command, cwd=PROJECT, env=self.environment, check=True, capture_output=True, text=True)

    def logs(self):
        return sorted(self.home.glob("projects/*/sessions/*/log.jsonl"), key=lambda path: path.stat().st_mtime)

    def end(self):
        self.simulator.terminate()
        self.simulator.wait()
        logs = self.logs()
        for number, log in enumerate(logs):
            suffix = "" if len(logs) == 1 else f"-{number + 1}"
            target = OUT / f"{self.name}{suffix}.jsonl"
            shutil.copy(log, target)
            target.chmod(0o644)
            print(f"{target.name}: {target.stat().st_size // 1024} KB, {sum(1 for _ in target.open())} entries")


def long_session(pal):
    """Sixty turns over many files, four prompts, a pause of ten minutes and one of two hours; never compacted."""
    sources = files(".rs")
    turns = []
    for number in range(14):
        turns.append(turn(f"I read part {number + 1}.", read(sources[number * 3 % len(sources)])))
        turns.append(turn("Where is it used?", call("Grep", pattern="pub fn", path=str(PROJECT), output_mode="content", head_limit=40)))
        if number % 4 == 3:
            turns.append(turn(f"Part {number + 1} is clear: the functions are small."))
    turns += [turn("The check first.", bash("sh check.sh"))]
    turns += [turn("It fails at its end on purpose.", read(str(PROJECT / "check.sh")))]
    turns += [turn("Now it passes.", call("Edit", file_path=str(PROJECT / "check.sh"), old_string="exit 1", new_string="exit 0"))]
    turns += [turn("Checked again.", bash("sh check.sh")), turn("Done: the check passes.")]
    recorder = Recorder(pal, "long", turns)
    recorder.prompt("Read the sources, part by part, and say what they do.")
    recorder.go_on("Go on with the next part.")
    recorder.pause(600)
    recorder.go_on("And the rest.")
    recorder.pause(7200)
    recorder.go_on("Good morning. Does `sh check.sh` pass? Mend it if it does not.")
    recorder.end()


def compacted_session(pal):
    """A window of 40,000 tokens: compacted several times, with edits and a pin that must survive."""
    sources = files(".rs")
    turns = []
    for number in range(36):
        turns.append(turn(f"File {number + 1}.", read(sources[(number * 5 + 1) % len(sources)], limit=220)))
        if number % 9 == 8:
            note = str(PROJECT / f"notes-{number}.md")
            turns.append(turn("I write down what I found.", call("Write", file_path=note, content=f"Found in part {number}.\n")))
            turns.append(turn(f"Nine more are read; the notes are in notes-{number}.md."))
    turns.append(turn("That is all."))
    recorder = Recorder(pal, "compacted", turns, window=40_000)
    recorder.prompt("Read all files and write down what you find. Never touch the folder docs.")
    session = recorder.logs()[0].parent.name
    recorder.run("pin", session, "The folder docs is never touched.")
    for text in ("Next.", "Go on, please. The file names matter.", "The last ones."):
        recorder.go_on(text)
    recorder.end()


def parallel_session(pal):
    """Several calls in one response, failures among them, and thinking."""
    sources = files(".rs")
    turns = []
    for number in range(6):
        group = [read(path) for path in sources[number * 3:number * 3 + 3]]
        turns.append(turn("Three at once.", *group, bash(f"ls -l {number}"), thinking=f"Round {number + 1} of six."))
        turns.append(turn("And a search.", call("Glob", pattern="**/*.md"), call("Grep", pattern="TODO", path=str(PROJECT)), bash("wc -c *.md")))
    turns.append(turn("All of them are read."))
    recorder = Recorder(pal, "parallel", turns)
    recorder.prompt("Read the sources, as many at once as you can.")
    recorder.end()


def forked_session(pal):
    """A session, and a second one that goes on from its end."""
    docs = files(".md")
    turns = [turn(f"Page {number + 1}.", read(path)) for number, path in enumerate(docs[:5])]
    turns += [turn("These are the pages."), turn("The fork looks elsewhere.", bash("head -c 3000 CHANGELOG.md")), turn("It is a list of changes.")]
    recorder = Recorder(pal, "forked", turns)
    recorder.prompt("What do the pages say?")
    recorder.prompt("Look at the changes instead.", "--continue", "--fork-session")
    recorder.end()


def resumed_session(pal):
    """Twelve processes, one after the other, each with one prompt."""
    docs = files(".md")
    turns = []
    for number in range(12):
        turns.append(turn("Let me look.", read(docs[number % len(docs)], limit=60)))
        turns.append(turn(f"Answer {number + 1}: it is on page {number % len(docs) + 1}."))
    recorder = Recorder(pal, "resumed", turns)
    recorder.prompt("Question 1: where is it?")
    for number in range(2, 13):
        recorder.pause(90 * number)
        recorder.go_on(f"Question {number}: and this?")
    recorder.end()


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    pal = str(pathlib.Path(sys.argv[1]).resolve())
    OUT.mkdir(exist_ok=True)
    for record in (long_session, compacted_session, parallel_session, forked_session, resumed_session):
        make_project()
        record(pal)
    shutil.rmtree(SCRATCH)


main()
