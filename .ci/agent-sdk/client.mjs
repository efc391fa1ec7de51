// Drives pal with the Agent SDK for Node: custom tool, permission callback, hook, interrupt, modes, models, output, resume.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const [pal, folder] = process.argv.slice(2);
const asked = [];
const hooked = [];

function check(value, what, detail) {
    if (!value) {
        console.error(`node: failed: ${what}: ${JSON.stringify(detail)}`);
        process.exit(1);
    }
}

const calc = createSdkMcpServer({
    name: "calc",
    version: "1.0.0",
    tools: [
        tool("add", "Adds two numbers.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
            content: [{ type: "text", text: String(a + b) }],
        })),
    ],
});

async function canUseTool(name, input, { toolUseID }) {
    asked.push([name, input.command, toolUseID]);
    if (input.command.startsWith("touch")) return { behavior: "allow", updatedInput: { command: "touch changed.txt" } };
    return { behavior: "deny", message: "the file stays" };
}

async function guard(event) {
    hooked.push([event.hook_event_name, event.tool_name]);
    if (!event.tool_input.command.includes("push")) return {};
    return {
        hookSpecificOutput: {
            hookEventName: "PreToolUse",
            permissionDecision: "deny",
            permissionDecisionReason: "nothing is pushed here",
        },
    };
}

// A queue of prompts that stays open until it is closed.
class Prompts {
    waiting = [];
    wake = null;
    isClosed = false;
    say(text) {
        this.waiting.push({ type: "user", session_id: "", parent_tool_use_id: null, message: { role: "user", content: text } });
        this.wake?.();
    }
    close() {
        this.isClosed = true;
        this.wake?.();
    }
    async *[Symbol.asyncIterator]() {
        while (true) {
            while (this.waiting.length) yield this.waiting.shift();
            if (this.isClosed) return;
            await new Promise((wake) => (this.wake = wake));
        }
    }
}

async function converse() {
    const prompts = new Prompts();
    const session = query({
        prompt: prompts,
        options: {
            pathToClaudeCodeExecutable: pal,
            cwd: folder,
            mcpServers: { calc },
            allowedTools: ["mcp__calc__add"],
            canUseTool,
            hooks: { PreToolUse: [{ matcher: "Bash", hooks: [guard] }] },
            agents: { critic: { description: "Criticizes.", prompt: "You criticize.", tools: ["Read"] } },
            includePartialMessages: true,
            systemPrompt: "Be brief.",
        },
    });
    const next = async (until) => {
        const messages = [];
        while (true) {
            const { value, done } = await session.next();
            check(!done, "the session ended early", messages);
            messages.push(value);
            if (until(value)) return messages;
        }
    };
    const ask = async (text) => {
        prompts.say(text);
        const messages = await next((message) => message.type === "result");
        return [messages, messages.at(-1)];
    };

    let [messages, result] = await ask("Add the numbers 2 and 40.");
    const init = messages.find((message) => message.subtype === "init");
    check(init.tools.includes("mcp__calc__add") && init.mcp_servers[0].status === "connected", "init", init);
    check(init.agents.includes("critic"), "an agent of the options", init.agents);
    const steps = messages.filter((message) => message.type === "stream_event").map((message) => message.event.type);
    check(steps[0] === "message_start" && steps.at(-1) === "message_stop", "steps", steps);
    check(result.subtype === "success" && result.result === "The sum is 42.", "custom tool", result);
    check(Object.values(result.modelUsage)[0].costUSD > 0, "usage by model", result);
    check((await session.supportedCommands()).some((command) => command.name === "compact"), "commands", null);

    [, result] = await ask("Make the file.");
    check(existsSync(join(folder, "changed.txt")) && !existsSync(join(folder, "asked.txt")), "a changed input", result);
    [, result] = await ask("Remove the file.");
    check(existsSync(join(folder, "changed.txt")) && result.result.includes("the file stays"), "a denied call", result);
    const before = asked.length;
    [, result] = await ask("Push it.");
    check(result.result.includes("nothing is pushed here") && asked.length === before, "a hook", result);

    prompts.say("Wait for long.");
    await next((message) => message.type === "assistant");
    while (hooked.length < 4) await new Promise((wake) => setTimeout(wake, 10));
    await session.interrupt();
    result = (await next((message) => message.type === "result")).at(-1);
    check(result.is_error && result.errors.length === 1, "an interrupt", result);

    await session.setPermissionMode("acceptEdits");
    await session.setModel("claude-haiku-4-5");
    [, result] = await ask("Who are you?");
    check(result.result.startsWith("claude-haiku-4-5 heard"), "another model", result);
    prompts.close();
    for await (const _ of session);
    return result.session_id;
}

async function once(prompt, more) {
    const messages = [];
    for await (const message of query({ prompt, options: { pathToClaudeCodeExecutable: pal, cwd: folder, ...more } })) messages.push(message);
    return messages;
}

const session = await converse();
const resumed = await once("Do you remember the sum?", { resume: session });
check(resumed[0].session_id === session && resumed[0].is_resumed, "resume", resumed[0]);
check(resumed.at(-1).result.includes("remember the sum"), "resume", resumed.at(-1));
const schema = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"] };
const output = (await once("Answer with data.", { outputFormat: { type: "json_schema", schema } })).at(-1);
check(output.structured_output?.answer === 42, "structured output", output);
console.log(`node: ${asked.length} permission callbacks, ${hooked.length} hooks, custom tool, interrupt, models, output and resume work`);
