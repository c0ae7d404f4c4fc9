// The report of `mycelia-insight html`: one script and one style sheet, which the command writes into a file of its own.
// What charts ask of the service is answered by that file, and it has as little of ECharts as they need.
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";
import { licenses } from "./licenses.ts";

const others: Record<string, string> = { "./http": "answers", "../api/http": "answers", "./echarts": "echarts" };
const stands: Plugin = {
  name: "stands",
  enforce: "pre",
  resolveId(source, importer) {
    const name = importer?.includes("/src/") ? others[source] : undefined;
    return name && fileURLToPath(new URL(`./src/report/${name}.ts`, import.meta.url));
  },
};

export default defineConfig({
  plugins: [stands, svelte(), licenses()],
  publicDir: false,
  build: {
    outDir: "../src/mycelia_insight/pages/report",
    emptyOutDir: true,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: fileURLToPath(new URL("./src/report/main.ts", import.meta.url)),
      output: { format: "iife", entryFileNames: "report.js", assetFileNames: "report[extname]" },
    },
  },
});
