import { readdirSync, readFileSync } from "node:fs";
import type { Plugin } from "vite";

// licenses.txt: the licence of each package of which a part is in the pages.
export function licenses(): Plugin {
  const names = new Set<string>();
  return {
    name: "licenses",
    moduleParsed({ id }) {
      const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];
      if (name) names.add(name);
    },
    generateBundle() {
      const parts = [...names].sort().map((name) => {
        const folder = new URL(`./node_modules/${name}/`, import.meta.url);
        const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
        const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file));
        if (!texts.length) throw new Error(`${name} has no file with its licence`);
        return [`${name} ${version} (${license}); its source is the npm package of that name`, ...texts.map((file) => readFileSync(new URL(file, folder), "utf8").trim())].join("\n\n");
      });
      this.emitFile({ type: "asset", fileName: "licenses.txt", source: `${parts.join(`\n\n${"=".repeat(80)}\n\n`)}\n` });
    },
  };
}
