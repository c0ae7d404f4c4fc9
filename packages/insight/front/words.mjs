// Prints the words of the pages as JSON, by topic and language; a function stands as "(number of its parameters)".
import { readdirSync } from "node:fs";
import { createServer } from "vite";

const server = await createServer({ configFile: false, root: import.meta.dirname, server: { middlewareMode: true, ws: false, hmr: false }, optimizeDeps: { noDiscovery: true }, appType: "custom", logLevel: "error" });
const load = (path) => server.ssrLoadModule(path);
const isTopic = (one) => one instanceof Object && "en" in one && "zh" in one;
const topics = {};
for (const file of readdirSync(new URL("./src/texts", import.meta.url)).filter((name) => name !== "index.ts"))
  for (const [name, value] of Object.entries(await load(`/src/texts/${file}`))) {
    if (isTopic(value)) topics[`${file}: ${name}`] = value;
    else (topics.frame ??= {})[name] = value;
  }
const pages = await load("/src/pages/index.ts");
for (const page of [...pages.boards, ...pages.runPages]) topics[page.path] = page.title;
console.log(JSON.stringify(topics, (_, value) => (typeof value === "function" ? `(${value.length})` : value)));
await server.close();
