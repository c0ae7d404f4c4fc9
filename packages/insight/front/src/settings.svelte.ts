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

// What the browser keeps under a name, as text; null is nothing.
export const kept = (name: string): string | null => store?.getItem(`mycelia-insight.${name}`) ?? null;

// Keeps it; a browser that has no room for more keeps nothing.
export function keep(name: string, text: string): void {
  try {
    store?.setItem(`mycelia-insight.${name}`, text);
  } catch {
    return;
  }
}

function oneOf<T extends string>(name: string, values: readonly T[], otherwise: T): T {
  const value = kept(name) as T | null;
  return value !== null && values.includes(value) ? value : otherwise;
}

const LONGEST_S = 300;

// An interval that was typed or kept: whole seconds up to five minutes, 0 for what is none.
export const seconds = (text: string | null) => Math.min(LONGEST_S, Math.max(0, Math.round(Number(text) || 0)));

class Settings {
  theme = $state(oneOf<Theme>("theme", ["light", "dark", "system"], "system"));
  language = $state(oneOf<Language>("language", ["en", "zh"], navigator.language.startsWith("zh") ? "zh" : "en"));
  live = $state(oneOf("live", ["on", "off"], "on"));
  interval = $state(seconds(kept("interval"))); // between two refreshes; 0: whenever there is something new
  asked = $state(0); // how often a refresh was asked for
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
    for (const name of ["theme", "language", "live", "interval"] as const) keep(name, String(this[name]));
  }
}

export const settings = new Settings();

// A moment, in seconds since 1970; – where nothing was written, or what was is none.
export function moment(seconds: number): string {
  const found = new Date(seconds * 1000);
  return seconds && Number.isFinite(found.getTime()) ? found.toLocaleString(settings.language) : "–";
}
