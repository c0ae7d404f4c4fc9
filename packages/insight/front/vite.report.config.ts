// The report of `mycelia-insight html`: one script and one style sheet, which the command writes into a file of its own.
// What charts ask of the service is answered by that file.
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";
import { licenses } from "./licenses.ts";

const answers: Plugin = {
  name: "answers",
  enforce: "pre",
  resolveId(source, importer) {
    const asks = /\/http$/.test(source) && importer?.includes("/src/");
    return asks ? fileURLToPath(new URL("./src/report/answers.ts", import.meta.url)) : undefined;
  },
};

export default defineConfig({
  plugins: [answers, svelte(), licenses()],
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
