import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { licenses } from "./licenses.ts";

// Relative paths: the service may have a prefix.
export default defineConfig({
  base: "./",
  plugins: [svelte(), licenses()],
  build: { outDir: "../src/mycelia_insight/pages", emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 700 }, // ECharts, which comes with the first chart that needs it
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
});
