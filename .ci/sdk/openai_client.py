"""OpenAI's own Python client against the compatible side of `pal sim`.

Usage: openai_client.py BASE_URL. The simulator runs with a virtual clock, the key `alpha` and the script `loop.toml`.
"""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1].rstrip("/") + "/v1", api_key="alpha", max_retries=0)
RULES = "You help in a repository. " + " ".join(f"Rule {n}: keep the change small." for n in range(300))
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
WORDS = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
ROUNDS = 12


def same(wanted, got, what):
    if wanted != got:
        raise AssertionError(f"{what}: wanted {wanted}, got {got}")
    print(f"  ok  {what}")


def responses(model, exact):
    """A stateless tool loop over the Responses dialect: every output item goes back as it came."""
    tools = [
        {"type": "function", "name": "read_file", "description": "Reads a file.", "parameters": SCHEMA},
        {"type": "function", "name": "search", "description": "Searches.", "parameters": WORDS},
    ]
    items = [{"role": "user", "content": "Work through the files, one by one."}]
    before = 0
    for turn in range(ROUNDS):
        wanted = dict(
            model=model, instructions=RULES, input=items, tools=tools, store=False, prompt_cache_key="one",
            include=["reasoning.encrypted_content"],
        )
        if turn % 2:
            with client.responses.stream(**wanted) as stream:
                for _ in stream:
                    pass
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**wanted)
        usage = answer.usage
        cached = usage.input_tokens_details.cached_tokens
        assert cached <= usage.input_tokens
        if turn:
            least = before if exact else before - before % 128
            assert cached >= least, f"turn {turn}: {cached} of {before} tokens were read"
        before = usage.input_tokens
        calls = [item for item in answer.output if item.type == "function_call"]
        assert calls, answer.output
        items += [item.to_dict() for item in answer.output]
        items += [
            {"type": "function_call_output", "call_id": call.call_id, "output": "result " + call.arguments * 8}
            for call in calls
        ]
    same(ROUNDS, turn + 1, f"Responses tool loop on {model}, {cached} of {usage.input_tokens} tokens read at its end")


def chat(model):
    tools = [
        {"type": "function", "function": {"name": "read_file", "description": "Reads a file.", "parameters": SCHEMA}},
        {"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": WORDS}},
    ]
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": "Work through the files."}]
    for turn in range(ROUNDS):
        if turn % 2:
            chunks = client.chat.completions.create(
                model=model, messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
            )
            calls, usage = {}, None
            for chunk in chunks:
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    for part in choice.delta.tool_calls or []:
                        call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                        call["id"] += part.id or ""
                        call["name"] += part.function.name or ""
                        call["arguments"] += part.function.arguments or ""
            found = [calls[index] for index in sorted(calls)]
        else:
            answer = client.chat.completions.create(model=model, messages=messages, tools=tools)
            usage = answer.usage
            said = answer.choices[0].message
            found = [
                {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
                for call in said.tool_calls or []
            ]
        assert found and usage.prompt_tokens > 0
        for call in found:
            json.loads(call["arguments"])
        messages.append(
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
                    for c in found
                ],
            }
        )
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": "result " + c["arguments"] * 8} for c in found]
    same(ROUNDS, turn + 1, f"Chat tool loop, {usage.prompt_tokens_details.cached_tokens} of {usage.prompt_tokens} tokens read at its end")


def errors():
    try:
        client.responses.create(model="gpt-6-sol", input="many words here " * 500_000)
        raise SystemExit("a prompt that is too long was taken")
    except openai.BadRequestError as error:
        same("context_length_exceeded", error.code, "a prompt that is too long")
    stranger = openai.OpenAI(base_url=client.base_url, api_key="wrong", max_retries=0)
    try:
        stranger.responses.create(model="gpt-6-sol", input="hello")
        raise SystemExit("a wrong key was taken")
    except openai.AuthenticationError:
        print("  ok  a wrong key")


def models():
    assert "gpt-6-sol" in [model.id for model in client.models.list()]
    print("  ok  the list of models")


print(f"openai {openai.__version__} against the simulator")
responses("gpt-6-sol", exact=True)
responses("gpt-5.1", exact=False)
chat("gpt-5.1")
models()
errors()
