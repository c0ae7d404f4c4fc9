// What a chart of a scalar draws: numbers in columns, and where there are none.
import type { Value } from "../api/http";
import type { Series } from "../api/scalars";

export interface Drawn {
  x: number[];
  value: (number | null)[];
  smoothed: (number | null)[] | null;
  steps: number[];
  times: number[];
  odd: { x: number; word: string }[]; // values that are not finite
  least: number;
  greatest: number;
}

export const axes = ["step", "relative", "absolute"] as const;
export type XAxis = (typeof axes)[number];

const finite = (value: Value): number | null => (typeof value === "number" ? value : null);

export function drawn(series: Series, axis: XAxis): Drawn {
  const x = axis === "step" ? series.steps : axis === "absolute" ? series.times : series.times.map((time) => time - series.first_time);
  const value = series.values.map(finite);
  const odd = series.values.flatMap((v, i) => (typeof v === "string" ? [{ x: x[i]!, word: v }] : []));
  let least = Infinity;
  let greatest = -Infinity;
  for (const v of value) {
    if (v === null) continue;
    if (v < least) least = v;
    if (v > greatest) greatest = v;
  }
  const smoothed = series.smoothed ? series.smoothed.map(finite) : null;
  return { x, value, smoothed, steps: series.steps, times: series.times, odd, least, greatest };
}

export const short = (value: number): string => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(5))));
