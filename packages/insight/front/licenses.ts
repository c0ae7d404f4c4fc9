import { existsSync, readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { Plugin } from "vite";

// licenses.txt: the licence of each package of which a part is in the pages.
export function licenses(): Plugin {
  const folders = new Map<string, string>(); // by name; a package may lie in the folder of another
  return {
    name: "licenses",
    moduleParsed({ id }) {
      const [, folder, name] = /(?:^|\0)(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(id) ?? [];
      if (folder && name) folders.set(name, folder);
    },
    generateBundle() {
      const parts = [...folders].sort().map(([name, path]) => {
        const folder = pathToFileURL(`${path}/`);
        const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
        const ofOthers = existsSync(new URL("licenses/", folder)) ? readdirSync(new URL("licenses/", folder)).map((file) => `licenses/${file}`) : [];
        const texts = [...readdirSync(folder).filter((file) => /^(licen[cs]e|notice)(\.\w+)?$/i.test(file)), ...ofOthers];
        if (!texts.length) throw new Error(`${name} has no file with its licence`);
        return [`${name} ${version} (${license}); its source is the npm package of that name`, ...texts.map((file) => readFileSync(new URL(file, folder), "utf8").trim())].join("\n\n");
      });
      this.emitFile({ type: "asset", fileName: "licenses.txt", source: `${parts.join(`\n\n${"=".repeat(80)}\n\n`)}\n` });
    },
  };
}
