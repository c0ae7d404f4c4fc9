// Axes of runs' values: where a value lies, from 0 to 1, and the axis as ECharts takes it.
import type { Cell } from "../api/lineages";
import { logTicks } from "../charts/curves";

export interface Axis {
  name: string;
  kind: "number" | "text" | "mixed";
  log: boolean;
  canLog: boolean;
  known: string[]; // categories; a run lies at their place in this list
  isOne: boolean; // all numbers are the same
  span: [number, number]; // of values, or of places in the list
  at: (value: Cell | undefined) => number | null; // on the axis: the value, or its place
  place: (value: Cell | undefined) => number | null;
  value: (place: number) => number; // on the axis
}

export const briefly = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
export const short = (value: number) => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential(1) : String(Number(value.toPrecision(4))));

export function axisOf(name: string, kind: Axis["kind"], values: (Cell | undefined)[], wantsLog: boolean): Axis {
  if (kind !== "number") {
    const known = [...new Set(values.filter((v) => v !== null && v !== undefined).map(String))].sort();
    const places = new Map(known.map((text, i) => [text, i]));
    const at = (value: Cell | undefined) => (value === null || value === undefined ? null : (places.get(String(value)) ?? null));
    const last = known.length - 1;
    const place = (value: Cell | undefined) => {
      const found = at(value);
      return found === null ? null : last > 0 ? found / last : 0.5;
    };
    return { name, kind, log: false, canLog: false, known, isOne: false, span: [-0.5, Math.max(0, last) + 0.5], at, place, value: (place) => (last > 0 ? place * last : place - 0.5) };
  }
  const finite = values.filter((v): v is number => typeof v === "number");
  const canLog = finite.length > 0 && finite.every((v) => v > 0);
  const log = wantsLog && canLog;
  const scaled = finite.map((v) => (log ? Math.log10(v) : v));
  let low = Math.min(...scaled);
  let high = Math.max(...scaled);
  const around = Math.max(0.5, 1e-9 * Math.abs(low)); // which large numbers are not too coarse for
  const isOne = low === high;
  if (!(low < high)) [low, high] = finite.length ? [low - around, high + around] : [0, 1];
  const value = (place: number) => (log ? 10 ** (low + place * (high - low)) : low + place * (high - low));
  return {
    name,
    kind,
    log,
    canLog,
    known: [],
    isOne,
    span: [value(0), value(1)],
    at: (v) => (typeof v === "number" ? v : null),
    place: (v) => (typeof v === "number" ? ((log ? Math.log10(v) : v) - low) / (high - low) : null),
    value,
  };
}

// A choice on an axis is kept as values of numbers, and of categories as places from 0 to 1.
export const keptAt = (axis: Axis, at: number) => (axis.kind === "number" ? at : axis.known.length > 1 ? at / (axis.known.length - 1) : at + 0.5);
export const shownAt = (axis: Axis, kept: number) => (axis.kind === "number" ? kept : axis.value(kept));

// What ECharts is told of an axis, with about so many ticks and labels of at most so many letters.
export function axisPart(axis: Axis, ticks: number, letters: number): { type: "value" | "log" } & Record<string, unknown> {
  const [min, max] = axis.span;
  const whole = { min, max, splitNumber: ticks };
  const at = (customValues: number[], text: (value: number) => string) => ({ axisTick: { customValues }, axisLabel: { customValues, hideOverlap: true, formatter: (value: number) => briefly(text(value), letters) } });
  if (axis.kind === "number") {
    const only = axis.value(0.5); // in the middle of what it has around it
    const text = (value: number) => short(value);
    if (axis.isOne) return { ...whole, type: axis.log ? "log" : "value", ...at([only], text) };
    if (axis.log) return { ...whole, type: "log", ...at([...new Set([min, ...logTicks(min, max), max])], text) };
    return { ...whole, type: "value", axisLabel: { hideOverlap: true, formatter: (value: number) => briefly(text(value), letters) } };
  }
  const every = Math.ceil(axis.known.length / ticks) || 1;
  return { ...whole, type: "value", ...at(axis.known.map((_, i) => i).filter((i) => i % every === 0), (i) => axis.known[i] ?? "") };
}
