// Colours of the style sheet, for what is drawn on a canvas.
import { settings } from "../settings.svelte";

const names = ["ink", "quiet", "line", "surface", "accent", "alarm"] as const;
export type Inks = Record<(typeof names)[number], string>;

// Those of the theme that is on: what calls this in an effect is called again with another theme.
export function inks(): Inks {
  void settings.dark;
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Inks;
}
