"""The vendor's own Python client against `pal sim`: what it reports must obey the rules of the cache.

Usage: anthropic_client.py BASE_URL. The simulator runs with a virtual clock, the keys `alpha` and `beta`, and the
script `loop.toml`. Ends with a table of what was checked, or with the first broken promise.
"""

import json
import sys
import urllib.request

import anthropic

BASE = sys.argv[1].rstrip("/")
MODEL = "claude-opus-5-5"
TURNS = 100

client = anthropic.Anthropic(base_url=BASE, api_key="alpha", max_retries=0)
other = anthropic.Anthropic(base_url=BASE, api_key="beta", max_retries=0)

MARK = {"type": "ephemeral"}
TOOLS = [
    {
        "name": "read_file",
        "description": "Reads one file of the project and gives its text. " + "It never writes anything. " * 30,
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {
        "name": "search",
        "description": "Searches the project for a word. " + "It gives the lines with their numbers. " * 30,
        "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
]
# Tokens after the last cache breakpoint of every request: the start of the assistant turn.
TAIL = 3
RULES = "You help in a repository. " + " ".join(f"Rule {n}: keep the change small and say what you saw." for n in range(120))


def advance(seconds):
    body = json.dumps({"advance_seconds": seconds}).encode()
    request = urllib.request.Request(f"{BASE}/sim/clock", data=body, method="POST")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def system(mark=MARK):
    return [{"type": "text", "text": RULES, "cache_control": mark}]


def marked(messages, mark=MARK):
    """The same messages with one mark, on the last block of the last one."""
    *earlier, last = messages
    content = last["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    content = [*content[:-1], {**content[-1], "cache_control": mark}]
    return [*earlier, {**last, "content": content}]


def counted(messages, tools=TOOLS, rules=None, using=client, model=MODEL):
    return using.messages.count_tokens(model=model, system=rules or system(), tools=tools, messages=messages).input_tokens


def ask(messages, tools=TOOLS, rules=None, using=client, model=MODEL, **more):
    return using.messages.create(
        model=model, max_tokens=2000, system=rules or system(), tools=tools, messages=messages, **more
    )


def kinds(usage):
    return usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0, usage.input_tokens


def whole(usage):
    return sum(kinds(usage))


def same(wanted, got, what):
    if wanted != got:
        raise AssertionError(f"{what}: wanted {wanted}, got {got}")
    print(f"  ok  {what}")


def results_of(answer):
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"result of {block.name}: " + json.dumps(block.input) * 12}
        for block in answer.content
        if block.type == "tool_use"
    ]


def tool_loop():
    """A cached tool loop: every answer's usage adds up, and what was written is read by the next request."""
    messages = [{"role": "user", "content": "Work through the files, one by one."}]
    before = 0
    turns = calls = 0
    while True:
        sent = marked(messages)
        size = counted(sent)
        if turns % 2:
            with client.messages.stream(
                model=MODEL, max_tokens=2000, system=system(), tools=TOOLS, messages=sent
            ) as stream:
                answer = stream.get_final_message()
        else:
            answer = ask(sent)
        read, written, uncached = kinds(answer.usage)
        assert read + written + uncached == size, (turns, answer.usage, size)
        assert read == before, f"turn {turns}: read {read}, but {before} were in the cache"
        assert uncached == TAIL, answer.usage
        before = read + written
        messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
        turns += 1
        if answer.stop_reason != "tool_use":
            break
        results = results_of(answer)
        calls += len(results)
        messages.append({"role": "user", "content": results})
        advance(20)
    assert turns >= TURNS, f"only {turns} turns"
    same("end_turn", answer.stop_reason, f"tool loop of {turns} turns and {calls} calls, {before} tokens cached at its end")


def cache_rules():
    """The promises about one byte, the lifetime and the isolation of the cache."""
    advance(2 * 3600)
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "One. " * 400, "cache_control": MARK}]},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Two. " * 200},
    ]
    sent = marked(messages)
    size = counted(sent)
    first = ask(sent).usage
    cached = size - TAIL
    same((0, cached, TAIL), kinds(first), "the first request writes everything")
    same((cached, 0, TAIL), kinds(ask(sent).usage), "the second identical one reads all that the first wrote")
    changed_tools = [{**TOOLS[0], "description": TOOLS[0]["description"] + "!"}, TOOLS[1]]
    same((0, counted(sent, changed_tools) - TAIL, TAIL), kinds(ask(sent, changed_tools).usage), "one byte of a tool re-writes everything")
    changed = marked([*messages[:-1], {"role": "user", "content": "Two. " * 200 + "!"}])
    read, written, uncached = kinds(ask(changed).usage)
    up_to_first = counted(messages[:1]) - TAIL
    same((up_to_first, counted(changed)), (read, read + written + uncached), "one byte of the last message re-writes what follows the mark before it")
    same((0, cached, TAIL), kinds(ask(sent, using=other).usage), "another key does not read it")
    other_model = "claude-sonnet-5-5"
    same(0, kinds(ask(sent, model=other_model).usage)[0], "another model does not read it")
    advance(200)
    same(cached, kinds(ask(sent).usage)[0], "a read within five minutes finds it and keeps it alive")
    advance(200)
    same(cached, kinds(ask(sent).usage)[0], "so it lives longer than five minutes")
    advance(301)
    same(0, kinds(ask(sent).usage)[0], "after the lifetime nothing is read")
    hour = {"type": "ephemeral", "ttl": "1h"}
    long_lived = marked(messages, hour)
    long_lived[0] = {**long_lived[0], "content": "Three. " * 400}
    usage = ask(long_lived, rules=system(hour)).usage
    same(usage.cache_creation_input_tokens, usage.cache_creation.ephemeral_1h_input_tokens, "an hour's entry is billed as one")
    advance(3500)
    same(whole(usage) - TAIL, kinds(ask(long_lived, rules=system(hour)).usage)[0], "and is read after 58 minutes")


def automatic_caching():
    advance(2 * 3600)
    plain = [{"type": "text", "text": RULES}]
    messages = [{"role": "user", "content": "Four. " * 300}]
    first = ask(messages, rules=plain, cache_control=MARK)
    second = ask(
        [*messages, {"role": "assistant", "content": [b.to_dict() for b in first.content]}, *follow_up(first)],
        rules=plain,
        cache_control=MARK,
    )
    same(whole(first.usage) - TAIL, kinds(second.usage)[0], "automatic caching moves on by itself")


def follow_up(answer):
    results = results_of(answer)
    return [{"role": "user", "content": results or "Go on."}]


def pre_warm():
    advance(2 * 3600)
    messages = [{"role": "user", "content": "hm"}]
    warm = client.messages.create(model=MODEL, max_tokens=0, system=system(), tools=TOOLS, messages=messages)
    same(([], "max_tokens", 0), (warm.content, warm.stop_reason, warm.usage.output_tokens), "a pre-warm says nothing")
    real = ask([{"role": "user", "content": "Now really."}])
    same(warm.usage.cache_creation_input_tokens, kinds(real.usage)[0], "and the next request reads what it wrote")


def diagnostics():
    advance(2 * 3600)
    messages = [{"role": "user", "content": "Five. " * 300}]
    first = ask(marked(messages), diagnostics={"previous_message_id": None})
    changed = [{"type": "text", "text": RULES + " One more.", "cache_control": MARK}]
    second = ask(marked(messages), rules=changed, diagnostics={"previous_message_id": first.id})
    same("system_changed", second.diagnostics.cache_miss_reason.type, "the provider's diagnosis names the layer")


def streaming():
    with client.messages.stream(
        model=MODEL, max_tokens=2000, messages=[{"role": "user", "content": "Say something."}]
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    said = "".join(block.text for block in final.content if block.type == "text")
    same(said, text, "the stream helper's text is the final text")
    assert text
    events = client.messages.create(
        model=MODEL, max_tokens=2000, messages=[{"role": "user", "content": "Say something."}], stream=True
    )
    names = [event.type for event in events]
    same(("message_start", "message_stop"), (names[0], names[-1]), "raw events begin and end as they should")


def runner():
    """The SDK's own tool loop."""

    @anthropic.beta_tool
    def read_file(path: str) -> str:
        """Reads one file.

        Args:
            path: where it is
        """
        return f"text of {path}"

    @anthropic.beta_tool
    def search(word: str) -> str:
        """Searches for a word.

        Args:
            word: what to look for
        """
        return f"lines with {word}"

    loop = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=2000,
        tools=[read_file, search],
        messages=[{"role": "user", "content": "Work through the files, one by one."}],
        max_iterations=12,
    )
    answers = list(loop)
    same(12, len(answers), "the SDK's tool runner goes round")


def models():
    listed = [model.id for model in client.models.list()]
    assert MODEL in listed, listed
    card = client.models.retrieve(MODEL)
    same((1_000_000, 128_000), (card.max_input_tokens, card.max_tokens), "the models endpoint knows the window")
    assert card.capabilities.thinking.types.adaptive.supported


def refused(kind, what, call):
    try:
        call()
    except kind as error:
        print(f"  ok  {what}: {str(error)[:90]}")
        return error
    raise AssertionError(f"{what}: nothing was refused")


def errors():
    hello = [{"role": "user", "content": "hello"}]
    refused(anthropic.BadRequestError, "a bad request", lambda: ask([{"role": "user", "content": []}]))
    refused(anthropic.NotFoundError, "an unknown model", lambda: ask(hello, model="claude-nobody-1"))
    stranger = anthropic.Anthropic(base_url=BASE, api_key="wrong", max_retries=0)
    refused(anthropic.AuthenticationError, "a wrong key", lambda: ask(hello, using=stranger))
    five = [{"type": "text", "text": f"part {n}", "cache_control": MARK} for n in range(5)]
    refused(anthropic.BadRequestError, "a fifth mark", lambda: ask([{"role": "user", "content": five}], rules=[{"type": "text", "text": "x"}]))
    long = [{"role": "user", "content": "many words here " * 400_000}]
    error = refused(anthropic.BadRequestError, "a prompt that is too long", lambda: ask(long))
    assert "prompt is too long" in str(error) and "maximum" in str(error)
    huge = [{"role": "user", "content": "x" * (33 * 1024 * 1024)}]
    refused(anthropic.APIStatusError, "a body that is too large", lambda: ask(huge))


def compaction():
    advance(2 * 3600)
    messages = [{"role": "user", "content": "Keep the name Palimpsest in mind. " * 300}]
    answer = client.beta.messages.create(
        model=MODEL, max_tokens=4000, messages=messages, compaction={"type": "summarize"}, betas=["compact-2026-09-04"]
    )
    same(("compaction", "compaction"), (answer.stop_reason, answer.content[0].type), "compaction on demand")
    after = client.beta.messages.create(
        model=MODEL,
        max_tokens=2000,
        messages=[{"role": "assistant", "content": [answer.content[0].to_dict()]}, {"role": "user", "content": "Go on."}],
        betas=["compact-2026-09-04"],
    )
    assert whole(after.usage) < whole(answer.usage.iterations[0]), (after.usage, answer.usage)
    print("  ok  and the conversation goes on from its block")


def main():
    print(f"anthropic {anthropic.__version__} against the simulator")
    for step in (streaming, tool_loop, cache_rules, automatic_caching, pre_warm, diagnostics, runner, models, errors, compaction):
        print(f"{step.__name__.replace('_', ' ')}")
        step()


main()
