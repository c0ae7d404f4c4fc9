// What the browser keeps: theme, language, whether pages follow the runs.
import { texts, type Language, type Topic } from "./texts";

type Theme = "light" | "dark" | "system";

// A browser may keep nothing for a page, such as for a file in a frame.
const store: Storage | undefined = (() => {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
})();

function kept<T extends string>(name: string, values: readonly T[], otherwise: T): T {
  const value = store?.getItem(`mycelia-insight.${name}`) as T | null | undefined;
  return value != null && values.includes(value) ? value : otherwise;
}

class Settings {
  theme = $state(kept<Theme>("theme", ["light", "dark", "system"], "system"));
  language = $state(kept<Language>("language", ["en", "zh"], navigator.language.startsWith("zh") ? "zh" : "en"));
  live = $state(kept("live", ["on", "off"], "on"));
  private prefersDark = $state(matchMedia("(prefers-color-scheme: dark)").matches);

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => (this.prefersDark = event.matches));
  }

  get dark(): boolean {
    return this.theme === "dark" || (this.theme === "system" && this.prefersDark);
  }

  get t() {
    return texts[this.language];
  }

  words<T>(topic: Topic<T>): T {
    return topic[this.language];
  }

  keep(): void {
    for (const name of ["theme", "language", "live"] as const) store?.setItem(`mycelia-insight.${name}`, this[name]);
  }
}

export const settings = new Settings();
