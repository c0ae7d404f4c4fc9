// Statistics of a tensor as one line.
import type { Statistics } from "../api/media";
import { short } from "../charts/curves";

export const told = (values: Statistics, names: Record<keyof Statistics, string>) =>
  (Object.keys(names) as (keyof Statistics)[]).map((name) => `${names[name]} ${values[name] === null ? "–" : short(values[name])}`).join(" · ");
