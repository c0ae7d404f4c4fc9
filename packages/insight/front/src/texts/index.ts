// Words of the frame are in en.ts and zh.ts; a page with many words of its own has them in a file beside, as `topic`.
import { en, type Texts } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";
export const texts: Record<Language, Texts> = { en, zh };

export interface Topic<T> {
  en: T;
  zh: T;
}
export const topic = <T>(en: T, zh: T): Topic<T> => ({ en, zh });
