// What plots of a target over parameters share.
import type { LineageRow } from "../api/lineages";
import type { Axis } from "./parallel";

export const briefly = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Ticks for which a small plot has room: both ends and the middle of numbers, up to four categories.
export function ends(axis: Axis): Axis["ticks"] {
  if (axis.kind === "number") return axis.ticks.filter((_, i) => i % 2 === 0);
  const every = Math.ceil(axis.ticks.length / 4);
  return axis.ticks.filter((_, i) => i % every === 0);
}

// Of each run from 0, the one that was written to first, to 1, the last one.
export function ages(rows: LineageRow[]): Map<string, number> {
  const sorted = [...rows].sort((a, b) => a.updated - b.updated);
  return new Map(sorted.map((row, i) => [row.run, i / Math.max(1, sorted.length - 1)]));
}

// Axes of parameters that vary: a metric or the loss is none, nor what is of several kinds.
export const parametersOf = (axes: Axis[], aim: string, rows: LineageRow[]) =>
  axes.filter((axis) => {
    if (axis.name === aim || axis.name === "loss" || axis.name.startsWith("metric/") || axis.kind === "mixed") return false;
    return new Set(rows.map((row) => axis.place(row.values[axis.name])).filter((at) => at !== null)).size > 1;
  });
