// Curves as charts draw them: numbers in columns, and where there are none.
import type { Value } from "../api/http";
import type { Series } from "../api/scalars";

export const axes = ["step", "relative", "absolute"] as const;
export type XAxis = (typeof axes)[number] | "scalar";
export type Side = "left" | "right";

export interface Curve {
  key: string; // tells it from the others of its chart
  name: string;
  colour: string;
  side: Side;
  x: Float64Array;
  y: Float64Array; // what the line shows; NaN where it is broken
  faint?: Float64Array | undefined; // the values themselves, behind a smoothed line
  band?: { low: Float64Array; high: Float64Array } | undefined;
  series?: Series | undefined; // what it was made of; point i of one is point i of the other
  odd: { x: number; word: string }[]; // values that are not finite
}

export type Who = Pick<Curve, "key" | "name" | "colour"> & { side?: Side };

const numbers = (values: Value[]): Float64Array => Float64Array.from(values, (value) => (typeof value === "number" ? value : NaN));

export function curveOf(series: Series, axis: XAxis, who: Who): Curve {
  const x = axis === "step" ? Float64Array.from(series.steps) : axis === "absolute" ? Float64Array.from(series.times) : axis === "relative" ? Float64Array.from(series.times, (time) => time - series.first_time) : numbers(series.x ?? []);
  const y = numbers(series.values);
  const odd = series.values.flatMap((v, i) => (typeof v === "string" && Number.isFinite(x[i]!) ? [{ x: x[i]!, word: v }] : []));
  const smoothed = series.smoothed && numbers(series.smoothed);
  return { side: "left", ...who, x, y: smoothed ?? y, faint: smoothed && y, series, odd };
}

export interface Extent {
  low: number;
  high: number;
}

const nothing: Extent = { low: Infinity, high: -Infinity };
export const isEmpty = (extent: Extent) => !(extent.low <= extent.high);
const wider = (a: Extent, low: number, high = low): Extent => ({ low: low < a.low ? low : a.low, high: high > a.high ? high : a.high });

export function extentOfX(curves: Curve[], log: boolean): Extent {
  let found = nothing;
  for (const { x } of curves) for (const at of x) if (Number.isFinite(at) && (!log || at > 0)) found = wider(found, at);
  return found;
}

// Of the values between two places of the axis: what the lines show, what stands faintly behind them, bands.
export function extentOfY(curves: Curve[], range: Extent, clip: boolean): Extent {
  let found = nothing;
  const all: number[] = [];
  for (const { x, y, faint, band } of curves)
    for (let i = 0; i < x.length; ++i) {
      if (!(x[i]! >= range.low && x[i]! <= range.high)) continue;
      for (const value of [y[i]!, faint?.[i], band?.low[i], band?.high[i]]) {
        if (value === undefined || !Number.isFinite(value)) continue;
        if (clip) all.push(value);
        else found = wider(found, value);
      }
    }
  if (!all.length) return found;
  // What is drawn has the greatest and the least of each column: a twentieth at either end holds the outliers.
  all.sort((a, b) => a - b);
  return { low: all[Math.floor(0.05 * (all.length - 1))]!, high: all[Math.ceil(0.95 * (all.length - 1))]! };
}

// A range with room at its ends, never empty.
export function roomy({ low, high }: Extent, log: boolean, share = 0.04): [number, number] {
  if (!(low <= high)) return log ? [0.1, 1] : [0, 1];
  if (log) {
    const room = low === high ? 2 : Math.max(1.0001, (high / low) ** share);
    return [low / room, high * room];
  }
  const room = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * share;
  return [low - room, high + room];
}

// Places of a scale: values from low to high stand from `from` to `to`.
export function placing(low: number, high: number, log: boolean, from: number, to: number): (value: number) => number {
  if (log) {
    const begin = Math.log10(low);
    const factor = (to - from) / (Math.log10(high) - begin);
    return (value) => (value > 0 ? from + (Math.log10(value) - begin) * factor : NaN);
  }
  const factor = (to - from) / (high - low);
  return (value) => from + (value - low) * factor;
}

type Pen = Pick<CanvasPath, "moveTo" | "lineTo">;

// A line through the points that have a place; it is broken where there is none.
export function trace(pen: Pen, x: Float64Array, y: Float64Array, px: (x: number) => number, py: (y: number) => number): void {
  let down = false;
  for (let i = 0; i < x.length; ++i) {
    const [left, top] = [px(x[i]!), py(y[i]!)];
    if (!Number.isFinite(left) || !Number.isFinite(top)) down = false;
    else if (down) pen.lineTo(left, top);
    else (down = true), pen.moveTo(left, top);
  }
}

// The outline of a band, there along its upper edge and back along the lower one.
export function outline(pen: Pen, curve: Curve, px: (x: number) => number, py: (y: number) => number): void {
  const { low, high } = curve.band!;
  const places = [...curve.x.keys()].filter((i) => Number.isFinite(py(low[i]!)) && Number.isFinite(px(curve.x[i]!)));
  places.forEach((i, n) => (n ? pen.lineTo(px(curve.x[i]!), py(high[i]!)) : pen.moveTo(px(curve.x[i]!), py(high[i]!))));
  for (const i of places.reverse()) pen.lineTo(px(curve.x[i]!), py(low[i]!));
}

// The point of a curve that is nearest to a place of the axis; -1 if it has none.
export function nearest(x: Float64Array, at: number): number {
  let best = -1;
  for (let i = 0; i < x.length; ++i) if (Number.isFinite(x[i]!) && (best < 0 || Math.abs(x[i]! - at) < Math.abs(x[best]! - at))) best = i;
  return best;
}

// Places for the marks of a logarithmic scale: 1, 2 and 5 of each power of ten, the powers alone if there are many.
export function logTicks(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const stride = Math.max(1, Math.ceil((last - first) / 8));
  const found: number[] = [];
  for (let power = first; power <= last; power += stride)
    for (const part of last - first > 4 ? [1] : [1, 2, 5]) {
      const at = part * 10 ** power;
      if (at >= low && at <= high) found.push(at);
    }
  if (found.length > 1) return found;
  return [0, 1, 2, 3].map((i) => Number((low * (high / low) ** ((i + 0.5) / 4)).toPrecision(3)));
}

export const short = (value: number): string => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(3).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(5))));

// Marks of an axis of moments: clock times within two days, else dates.
export const moment = (seconds: number, span: number, language: string): string => {
  const at = new Date(seconds * 1000);
  return span > 2 * 86400 ? at.toLocaleDateString(language, { month: "short", day: "numeric" }) : at.toLocaleTimeString(language, span > 300 ? { hour: "2-digit", minute: "2-digit" } : {});
};

// What is said of a point: its value, smoothed too, its step and times.
export interface Told {
  step: number;
  value: Value;
  smoothed?: Value | undefined;
  relative: number; // seconds
  absolute: number; // seconds since 1970
}

export function told(curve: Curve, i: number): Told | undefined {
  const series = curve.series;
  if (!series || i < 0 || i >= series.steps.length) return undefined;
  return { step: series.steps[i]!, value: series.values[i]!, smoothed: series.smoothed?.[i], relative: series.times[i]! - series.first_time, absolute: series.times[i]! };
}

// Of what is drawn, which has the least and the greatest value of all: where they stand, and the last one.
export interface Summary {
  count: number;
  least?: { value: number; step: number };
  greatest?: { value: number; step: number };
  last?: { value: Value; step: number };
}

export function summaryOf(series: Series): Summary {
  const found: Summary = { count: series.count };
  series.values.forEach((value, i) => {
    const step = series.steps[i]!;
    found.last = { value, step };
    if (typeof value !== "number") return;
    if (!found.least || value < found.least.value) found.least = { value, step };
    if (!found.greatest || value > found.greatest.value) found.greatest = { value, step };
  });
  return found;
}

const palette = ["#1f77b4", "#d95f02", "#2a9d5c", "#c0392b", "#8e5bb5", "#8c6d31", "#d4569d", "#6b7a82", "#a3a500", "#17a2b8"];
// Hues a golden angle apart, behind the first ten.
export const colourOf = (place: number): string => palette[place] ?? `hsl(${Math.round(place * 137.508) % 360} ${55 + (place % 3) * 12}% ${42 + (place % 2) * 12}%)`;

