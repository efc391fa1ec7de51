"""The vendor's client against a simulator whose first requests go wrong: its own retries must get through.

Usage: anthropic_retries.py BASE_URL. Requests 1 (529), 2 (500), 4 (cut in the middle) and 6 (dropped) are spoiled.
"""

import sys

import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="alpha", max_retries=3)
HELLO = [{"role": "user", "content": "Say something."}]


def ask():
    return client.messages.create(model="claude-opus-5-5", max_tokens=500, messages=HELLO)


first = ask()
assert first.content and first.stop_reason == "end_turn", first
print("  ok  529 and 500 are retried by the client")
try:
    with client.messages.stream(model="claude-opus-5-5", max_tokens=500, messages=HELLO) as stream:
        stream.get_final_message()
    raise SystemExit("a stream that was cut seemed whole")
except Exception as error:
    assert not isinstance(error, SystemExit)
    print(f"  ok  a cut stream is an error to the client: {type(error).__name__}")
assert ask().content
assert ask().content
print("  ok  a dropped connection is retried by the client")
