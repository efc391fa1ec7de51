"""Drives pal with the Agent SDK for Python: custom tool, permission callback, hook, interrupt, modes, models, output, resume."""

import asyncio
import pathlib
import sys

import claude_agent_sdk as sdk

PAL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
asked = []
hooked = []


@sdk.tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(arguments):
    return {"content": [{"type": "text", "text": f"{arguments['a'] + arguments['b']:g}"}]}


async def decide(name, arguments, context):
    asked.append((name, arguments.get("command"), context.tool_use_id))
    command = arguments.get("command", "")
    if command.startswith("touch"):
        return sdk.PermissionResultAllow(updated_input={"command": "touch changed.txt"})
    return sdk.PermissionResultDeny(message="the file stays")


async def guard(event, tool_use_id, context):
    hooked.append((event["hook_event_name"], event["tool_name"], tool_use_id))
    if "push" in event["tool_input"].get("command", ""):
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "nothing is pushed here",
            }
        }
    return {}


def options(**more):
    return sdk.ClaudeAgentOptions(
        cli_path=PAL,
        cwd=FOLDER,
        mcp_servers={"calc": sdk.create_sdk_mcp_server("calc", tools=[add])},
        allowed_tools=["mcp__calc__add"],
        can_use_tool=decide,
        hooks={"PreToolUse": [sdk.HookMatcher(matcher="Bash", hooks=[guard], timeout=30)]},
        agents={"critic": sdk.AgentDefinition(description="Criticizes.", prompt="You criticize.", tools=["Read"])},
        include_partial_messages=True,
        **more,
    )


async def ask(client, prompt):
    """The messages of one prompt, and its result."""
    await client.query(prompt)
    messages = [message async for message in client.receive_response()]
    assert isinstance(messages[-1], sdk.ResultMessage), messages
    return messages, messages[-1]


def check(value, what):
    if not value:
        raise SystemExit(f"python: failed: {what}")


async def converse():
    async with sdk.ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
        check(any(command["name"] == "compact" for command in info["commands"]), f"commands in {info}")

        messages, result = await ask(client, "Add the numbers 2 and 40.")
        init = next(message.data for message in messages if isinstance(message, sdk.SystemMessage) and message.subtype == "init")
        check("mcp__calc__add" in init["tools"] and {"name": "calc", "status": "connected"} in init["mcp_servers"], f"init: {init}")
        check(init["permissionMode"] == "default", "the mode in init")
        check("critic" in init["agents"], f"an agent of the options: {init['agents']}")
        calls = [block for message in messages if isinstance(message, sdk.AssistantMessage) for block in message.content if isinstance(block, sdk.ToolUseBlock)]
        check([call.name for call in calls] == ["mcp__calc__add"], f"the tool's own name: {calls}")
        check(result.result == "The sum is 42." and not result.is_error, f"custom tool: {result}")
        check(list(result.model_usage) and result.total_cost_usd > 0, f"usage by model: {result}")
        steps = [message.event["type"] for message in messages if isinstance(message, sdk.StreamEvent)]
        check(steps[0] == "message_start" and steps[-1] == "message_stop", f"steps: {steps}")
        check({"content_block_start", "content_block_delta", "content_block_stop", "message_delta"} <= set(steps), f"steps: {steps}")

        _, result = await ask(client, "Make the file.")
        check((FOLDER / "changed.txt").exists() and not (FOLDER / "asked.txt").exists(), f"a changed input: {result}")
        check(asked[-1][:2] == ("Bash", "touch asked.txt") and asked[-1][2], f"the callback: {asked}")

        _, result = await ask(client, "Remove the file.")
        check((FOLDER / "changed.txt").exists() and "the file stays" in result.result, f"a denied call: {result}")
        check(result.permission_denials[0]["tool_name"] == "Bash", f"denials: {result}")

        before = len(asked)
        _, result = await ask(client, "Push it.")
        check("nothing is pushed here" in result.result and len(asked) == before, f"a hook: {result}")
        check(("PreToolUse", "Bash") in [event[:2] for event in hooked], f"hooks: {hooked}")

        await client.query("Wait for long.")
        interrupted = None
        async for message in client.receive_response():
            if isinstance(message, sdk.AssistantMessage):
                while len(hooked) < 4:
                    await asyncio.sleep(0.01)
                await client.interrupt()
            interrupted = message
        check(isinstance(interrupted, sdk.ResultMessage) and interrupted.is_error, f"an interrupt: {interrupted}")

        await client.set_permission_mode("acceptEdits")
        try:
            await client.set_permission_mode("bypassPermissions")
            check(False, "a session does not turn permission checks off")
        except Exception as error:
            check("only in a session that started" in str(error), f"the refusal: {error}")
        status = await client.get_mcp_status()
        check(status["mcpServers"][0]["status"] == "connected", f"states of servers: {status}")
        await client.set_model("claude-haiku-4-5")
        _, result = await ask(client, "Who are you?")
        check(result.result.startswith("claude-haiku-4-5 heard"), f"another model: {result}")
        check(len(result.model_usage) == 2, f"two models: {result.model_usage}")
        return result.session_id


async def resume(session):
    prompt = "Do you remember the sum?"
    messages = [message async for message in sdk.query(prompt=prompt, options=sdk.ClaudeAgentOptions(cli_path=PAL, cwd=FOLDER, resume=session))]
    init, result = messages[0].data, messages[-1]
    check(init["session_id"] == session and init["is_resumed"], f"resume: {init}")
    check("remember the sum" in result.result, f"resume: {result}")


async def output():
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    wanted = sdk.ClaudeAgentOptions(cli_path=PAL, cwd=FOLDER, output_format={"type": "json_schema", "schema": schema})
    messages = [message async for message in sdk.query(prompt="Answer with data.", options=wanted)]
    check(messages[-1].structured_output == {"answer": 42}, f"structured output: {messages[-1]}")


async def main():
    session = await converse()
    await resume(session)
    await output()
    print(f"python: {len(asked)} permission callbacks, {len(hooked)} hooks, custom tool, interrupt, models, output and resume work")


asyncio.run(main())
