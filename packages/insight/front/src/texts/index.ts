import { en, type Texts } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";
export const texts: Record<Language, Texts> = { en, zh };
