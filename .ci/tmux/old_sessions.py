"""Writes 300 sessions as Claude Code records them below a directory, and prints what they cost: a line for each day and project.

The sums are computed here from the prices of the model, apart from the program under test."""

import json
import sys
from pathlib import Path

MODEL = "claude-sonnet-4-5"
# Dollars per million tokens.
INPUT, OUTPUT, READ, WRITE = 3.0, 15.0, 0.3, 3.75
DAYS = ["2026-05-04", "2026-05-05", "2026-05-06"]
PROJECTS = ["engine", "website", "scripts"]


def main(root):
    sums = {}
    for number in range(300):
        day, project = DAYS[number % 3], PROJECTS[number // 3 % 3]
        cost = write_session(root, number, day, project)
        for key in (day, project, "total"):
            sums[key] = sums.get(key, 0.0) + cost
    for key, cost in sums.items():
        print(f"{key}\t${cost:,.2f}")


def write_session(root, number, day, project):
    session = f"00000000-0000-4000-8000-{number:012d}"
    cost, parent, lines = 0.0, None, []
    words = "the lighthouse keeper" if number == 126 else f"part {number}"
    for turn in range(3):
        at = f"{day}T12:{turn:02d}"
        usage = {
            "input_tokens": 10 + number,
            "cache_creation_input_tokens": 2000 + 10 * number,
            "cache_read_input_tokens": 5000 * turn,
            "output_tokens": 300 + turn,
        }
        prices = zip((INPUT, WRITE, READ, OUTPUT), usage.values())
        cost += sum(price * tokens for price, tokens in prices) / 1e6
        said = {"role": "user", "content": f"Turn {turn}: work on {words} of {project}."}
        message = {
            "id": f"msg_{number:04d}_{turn}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": f"Turn {turn} on {words} is done."}],
            "stop_reason": "end_turn",
            "usage": usage,
        }
        for kind, seconds, body in (("user", 10, said), ("assistant", 20, message)):
            uuid = f"{number:08d}-{turn:04d}-4000-8000-{seconds:012d}"
            line = {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": f"/home/ada/{project}",
                "sessionId": session,
                "version": "2.1.0",
                "type": kind,
                "message": body,
                "uuid": uuid,
                "timestamp": f"{at}:{seconds}.000Z",
            }
            if kind == "assistant":
                line["requestId"] = f"req_{number:04d}_{turn}"
            lines.append(json.dumps(line))
            parent = uuid
    path = Path(root) / f"-home-ada-{project}" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return cost


main(sys.argv[1])
