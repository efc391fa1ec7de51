// Compares what stands before the messages in all requests that the simulator noted down.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const requests = readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")))
    .map((noted) => noted.body ?? noted)
    .filter((body) => Array.isArray(body.messages));
// Marks for the cache move with the conversation and are no part of what is compared.
const plain = (value) => JSON.stringify(value, (key, inner) => (key === "cache_control" ? undefined : inner));
const prefixes = new Set(requests.map((body) => plain([body.tools, body.system, body.messages[0]])));
console.log(`${requests.length} requests, ${prefixes.size} beginning`);
process.exit(requests.length > 2 && prefixes.size === 1 ? 0 : 1);
