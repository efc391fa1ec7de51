"""Runs the same tool calls under the same settings with Claude Code and with pal, and compares what is allowed.

A scripted provider on loopback asks for one call after the other. A call counts as allowed if its result is no error: each call of the
table succeeds if nothing forbids it. Nobody answers questions, so a call that asks is denied.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLAUDE, PAL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ONLY = sys.argv[3:]


def bash(command):
    return ("Bash", {"command": command, "description": "Runs a command"})


def read(path):
    return ("Read", {"file_path": path})


def write(path):
    return ("Write", {"file_path": path, "content": "new\n"})


def edit(path):
    return ("Edit", {"file_path": path, "old_string": "alpha", "new_string": "beta"})


def hook(body):
    """A PreToolUse hook of a shell script; $input holds the event."""
    return {"type": "command", "command": "input=$(cat); " + body}


def says(decision):
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
                                     "permissionDecisionReason": "the test says so"}}
    return hook("echo '%s'" % json.dumps(answer))


def plugins(**hooks):
    """Files of a marketplace with a plugin for each PreToolUse hook, all installed."""
    market = {"source": {"source": "directory", "path": "{home}/market"}, "installLocation": "{home}/market",
              "lastUpdated": "2026-11-01T00:00:00.000Z"}
    installed = {"%s@acme" % name: [{"scope": "user", "installPath": "{home}/market/" + name, "version": "1.0.0",
                                     "installedAt": "2026-11-01T00:00:00.000Z", "lastUpdated": "2026-11-01T00:00:00.000Z"}] for name in hooks}
    listed = [{"name": name, "source": "./" + name} for name in hooks]
    files = {
        "home/.claude/plugins/known_marketplaces.json": {"acme": market},
        "home/.claude/plugins/installed_plugins.json": {"version": 2, "plugins": installed},
        "home/market/.claude-plugin/marketplace.json": {"name": "acme", "owner": {"name": "Acme"}, "plugins": listed},
    }
    for name, body in hooks.items():
        files["home/market/%s/.claude-plugin/plugin.json" % name] = {"name": name, "version": "1.0.0"}
        files["home/market/%s/hooks/hooks.json" % name] = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook(body)]}]}}
    return files


# Name, settings by file, calls with the paths {project}, {other}, {home}, {outside}; each file is made anew for a setup.
SETUPS = [
    ("hooks of plugins", {"user": {"permissions": {"allow": ["Bash"]}, "enabledPlugins": {"guard@acme": True, "off@acme": False}},
                          **plugins(guard='test -d "$CLAUDE_PLUGIN_ROOT/hooks" || exit 0; case "$input" in *forbidden*) exit 2;; esac', off="exit 2")}, [
        bash("touch fine"),
        bash("touch forbidden"),
        bash("mkdir also-fine"),
    ]),
    ("nothing is allowed", {}, [
        bash("touch made-by-default"),
        write("{project}/new.txt"),
        edit("{project}/src/a.txt"),
        read("{project}/src/a.txt"),
        bash("ls src"),
        bash("cat src/a.txt"),
        bash("mkdir made"),
    ]),
    ("allow rules of the user", {"user": {"permissions": {"allow": [
        "Bash(touch allowed*)", "Bash(mkdir exact)", "Bash(npm run test:*)", "Bash(python3 -c *)", "Edit(src/**)", "Bash(cp src/a.txt:*)"]}}}, [
        bash("touch allowed-1"),
        bash("touch other-1"),
        bash("mkdir exact"),
        bash("mkdir exact2"),
        bash("python3 -c 'print(1)'"),
        bash("touch allowed-2 && mkdir sneaky"),
        bash("touch allowed-3; touch allowed-4"),
        edit("{project}/src/a.txt"),
        edit("{project}/docs/b.txt"),
        write("{project}/src/new.txt"),
        bash("touch allowed-5 > redirected.txt"),
        bash("touch $(echo allowed-6)"),
    ]),
    ("deny beats allow", {"user": {"permissions": {"allow": ["Bash(touch:*)", "Bash(mkdir:*)", "Read", "Edit"], "deny": [
        "Bash(mkdir:*)", "Read(./secret/**)", "Edit(docs/**)", "Read(**/*.pem)", "WebFetch"]}}}, [
        bash("touch fine"),
        bash("mkdir never"),
        bash("touch fine2 && mkdir never2"),
        read("{project}/src/a.txt"),
        read("{project}/secret/key.txt"),
        read("{project}/deep/down/x.pem"),
        edit("{project}/docs/b.txt"),
        edit("{project}/src/a.txt"),
        bash("cat secret/key.txt"),
    ]),
    ("ask rules deny without a person", {"user": {"permissions": {"allow": ["Bash(touch:*)", "Edit"], "ask": ["Bash(touch ask*)", "Edit(src/**)"]}}}, [
        bash("touch quiet"),
        bash("touch ask-first"),
        edit("{project}/docs/b.txt"),
        edit("{project}/src/a.txt"),
    ]),
    ("project, local and user add up", {
        "user": {"permissions": {"allow": ["Bash(touch user*)"], "deny": ["Bash(touch userdeny*)"]}},
        "project": {"permissions": {"allow": ["Bash(touch project*)"], "deny": ["Bash(touch projectdeny*)"]}},
        "local": {"permissions": {"allow": ["Bash(touch local*)"], "deny": ["Bash(touch user-local*)"]}}}, [
        bash("touch user-1"),
        bash("touch project-1"),
        bash("touch local-1"),
        bash("touch none-1"),
        bash("touch userdeny-1"),
        bash("touch projectdeny-1"),
        bash("touch user-local-1"),
    ]),
    ("acceptEdits", {"user": {"permissions": {"defaultMode": "acceptEdits", "deny": ["Edit(docs/**)"]}}}, [
        write("{project}/new.txt"),
        edit("{project}/src/a.txt"),
        edit("{project}/docs/b.txt"),
        bash("python3 -c 'print(1)'"),
        write("{outside}/new.txt"),
        read("{project}/src/a.txt"),
    ]),
    ("plan", {"user": {"permissions": {"defaultMode": "plan", "allow": []}}}, [
        read("{project}/src/a.txt"),
        write("{project}/new.txt"),
        bash("python3 -c 'print(1)'"),
    ]),
    ("directories and absolute paths", {"user": {"permissions": {
        "additionalDirectories": ["{other}"],
        "allow": ["Read(/{outside}/open/**)", "Edit(/src/**)", "Read(~/notes/**)"]}}}, [
        read("{other}/o.txt"),
        read("{outside}/open/x.txt"),
        read("{outside}/closed/x.txt"),
        edit("{project}/src/a.txt"),
        edit("{project}/docs/b.txt"),
        read("{home}/notes/n.txt"),
    ]),
    ("paths of the project's file", {"project": {"permissions": {"allow": ["Edit(/docs/**)", "Write(./made/**)", "Edit(./dotted/**)", "Write(plain/**)"], "deny": ["Read(/secret/**)"]}}}, [
        edit("{project}/docs/b.txt"),
        edit("{project}/src/a.txt"),
        write("{project}/made/new.txt"),
        write("{project}/dotted/new.txt"),
        write("{project}/plain/new.txt"),
        write("{project}/src/new.txt"),
        read("{project}/secret/key.txt"),
    ]),
    ("hooks decide", {"user": {"permissions": {"allow": ["Bash(touch:*)"]}, "env": {"GUARD": "blocked"}, "hooks": {"PreToolUse": [
        {"matcher": "Bash", "hooks": [hook('case "$input" in *"$GUARD"*) echo no >&2; exit 2;; esac')]},
        {"matcher": "Write", "hooks": [says("allow")]},
        {"matcher": "Edit", "hooks": [says("deny")]},
        {"matcher": "Read", "hooks": [hook("exit 1")]}]}}}, [
        bash("touch free"),
        bash("touch blocked-1"),
        write("{project}/new.txt"),
        edit("{project}/src/a.txt"),
        read("{project}/src/a.txt"),
        bash("mkdir asks"),
    ]),
    ("a hook cannot lift a deny rule", {"user": {"permissions": {"deny": ["Bash(touch denied*)"], "ask": ["Bash(touch asked*)"]},
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [says("allow")]}]}}}, [
        bash("touch denied-1"),
        bash("touch plain-1"),
    ]),
    ("hooks of the project, and all of them off", {
        "project": {"permissions": {"allow": ["Bash(touch:*)"]}, "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook("exit 2")]}]}},
        "local": {"disableAllHooks": True}}, [
        bash("touch hooks-are-off"),
    ]),
    ("whole tools", {"user": {"permissions": {"allow": ["Bash", "Read", "Write"], "deny": ["Edit", "Bash(rm:*)"], "ask": ["Bash(mkdir:*)"]}}}, [
        bash("touch anything"),
        bash("rm -f src/a.txt"),
        bash("touch a; rm -f b"),
        bash("(rm -f src/a.txt)"),
        bash("mkdir asks"),
        edit("{project}/src/a.txt"),
        write("{project}/new.txt"),
    ]),
    ("edits that are accepted reach commands", {"user": {"permissions": {"defaultMode": "acceptEdits", "deny": ["Bash(touch denied*)"]}}}, [
        # Directly in the project a sandbox of Landlock alone creates nothing.
        bash("mkdir src/made"),
        bash("touch src/made-2"),
        bash("touch denied-1"),
        bash("python3 run.py"),
        bash("curl -s http://127.0.0.1:1/"),
    ]),
    ("a hook asks, a hook changes the input", {"user": {"permissions": {"allow": ["Bash(touch:*)"]}, "hooks": {"PreToolUse": [
        {"matcher": "Bash", "hooks": [hook('case "$input" in *ask-me*) echo \'%s\';; esac' % json.dumps({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "look"}}))]},
        {"matcher": "^(Write|Edit)$", "hooks": [hook("echo '%s'" % json.dumps({"decision": "block", "reason": "old form"}))]}]}}}, [
        bash("touch fine"),
        bash("touch ask-me"),
        write("{project}/new.txt"),
    ]),
    ("a nearer file lifts no restriction", {
        "user": {"permissions": {"deny": ["Bash(touch:*)"]}},
        "project": {"permissions": {"allow": ["Bash(touch:*)", "Bash(mkdir:*)"]}},
        "local": {"permissions": {"allow": ["Bash(touch:*)"], "ask": ["Bash(mkdir:*)"]}}}, [
        bash("touch never"),
        bash("mkdir asks"),
    ]),
    ("wildcards", {"user": {"permissions": {"allow": ["Bash(touch * end)", "Bash(echo *)", "Bash(python3 *.py)"], "deny": ["Bash(echo secret*)"]}}}, [
        bash("touch start end"),
        bash("touch start stop"),
        bash("echo hello world"),
        bash("echo secret"),
        bash("python3 run.py"),
    ]),
]


class Provider(BaseHTTPRequestHandler):
    """Asks for the calls of a setup, one a response, and records the results."""

    protocol_version = "HTTP/1.1"
    calls, results = [], {}

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path:
            return self.reply(json.dumps({"input_tokens": 10}).encode(), "application/json")
        results = {}
        for message in body.get("messages", []):
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    results[block["tool_use_id"]] = block
        is_work = any(tool.get("name") == "Bash" for tool in body.get("tools", []))
        Provider.results.update(results if is_work else {})
        at = len(results)
        if is_work and at < len(Provider.calls):
            name, given = Provider.calls[at]
            content = {"type": "tool_use", "id": "toolu_%02d" % at, "name": name, "input": given}
        else:
            content = {"type": "text", "text": "Done."}
        message = {"id": "msg_%02d" % at, "type": "message", "role": "assistant", "model": body.get("model", "m"),
                   "content": [content], "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
                   "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10}}
        if not body.get("stream"):
            return self.reply(json.dumps(message).encode(), "application/json")
        self.reply(stream(message), "text/event-stream")

    def reply(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def stream(message):
    block = message["content"][0]
    if block["type"] == "tool_use":
        start = dict(block, input={})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    events = [
        {"type": "message_start", "message": dict(message, content=[], stop_reason=None)},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return "".join("event: %s\ndata: %s\n\n" % (event["type"], json.dumps(event)) for event in events).encode()


def make_world(folder, settings):
    """Files and settings of a setup; returns its paths."""
    paths = {name: os.path.join(folder, name) for name in ["project", "other", "home", "outside"]}
    files = {
        "project/src/a.txt": "alpha\n", "project/docs/b.txt": "alpha\n", "project/secret/key.txt": "k\n",
        "project/deep/down/x.pem": "p\n", "project/run.py": "print(1)\n", "other/o.txt": "o\n",
        "outside/open/x.txt": "x\n", "outside/closed/x.txt": "x\n", "home/notes/n.txt": "n\n",
    }
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    subprocess.run(["git", "init", "-q", paths["project"]], check=True)
    places = {"user": "home/.claude/settings.json", "project": "project/.claude/settings.json",
              "local": "project/.claude/settings.local.json"}
    for place, value in settings.items():
        text = json.dumps(value)
        for name, path in paths.items():
            text = text.replace("{%s}" % name, path)
        path = os.path.join(folder, places.get(place, place))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    trust = {"hasCompletedOnboarding": True, "projects": {paths["project"]: {"hasTrustDialogAccepted": True}}}
    with open(os.path.join(folder, "home/.claude.json"), "w") as file:
        json.dump(trust, file)
    return paths


def with_reads(calls):
    """The calls, each edit after a look at its file: an editor must have seen what it changes."""
    for name, given in calls:
        if name == "Edit":
            yield read(given["file_path"])
        yield (name, given)


def run(program, settings, calls):
    """Results of the calls: whether each was allowed, and its text."""
    folder = os.path.realpath(tempfile.mkdtemp())
    try:
        paths = make_world(folder, settings)
        fill = lambda text: text.format(**paths) if text.startswith("{") else text
        Provider.calls = [(name, {key: fill(value) for key, value in given.items()}) for name, given in calls]
        Provider.results = {}
        environment = {
            "HOME": paths["home"], "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SHELL": "/bin/bash",
            "ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": ADDRESS, "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1", "PAL_EXTRACTION": "false", "PAL_DREAMING": "false",
        }
        done = subprocess.run([program, "-p", "Do it.", "--model", "claude-opus-5-5"], cwd=paths["project"], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
        results = []
        for at, (name, given) in enumerate(calls):
            block = Provider.results.get("toolu_%02d" % at)
            if block is None:
                raise SystemExit("%s made no call %d: %s%s" % (program, at, done.stdout[-800:], done.stderr[-800:]))
            results.append((not block.get("is_error", False), json.dumps(block.get("content"))[:300]))
        return results
    finally:
        shutil.rmtree(folder, ignore_errors=True)


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
ADDRESS = "http://127.0.0.1:%d" % server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()
# Where pal is stricter on purpose, with the reason (docs/permissions.md).
STRICTER = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stricter.json")))
n_cases, n_same, n_stricter, wrong = 0, 0, 0, []
for name, settings, calls in SETUPS:
    if ONLY and name not in ONLY:
        continue
    calls = list(with_reads(calls))
    theirs, ours = run(CLAUDE, settings, calls), run(PAL, settings, calls)
    for (tool, given), (is_theirs, their_text), (is_ours, our_text) in zip(calls, theirs, ours):
        case = "%s: %s %s" % (name, tool, given.get("command") or given.get("file_path"))
        n_cases += 1
        if is_theirs == is_ours:
            n_same += 1
        elif is_theirs and case in STRICTER:
            n_stricter += 1
        else:
            wrong.append("%s\n    Claude Code %s: %s\n    pal %s: %s" % (
                case, "allows" if is_theirs else "denies", their_text, "allows" if is_ours else "denies", our_text))
print("%d cases: %d with the same outcome, %d where pal is stricter on purpose, %d different" % (n_cases, n_same, n_stricter, len(wrong)))
for text in wrong:
    print(text)
sys.exit(bool(wrong))
