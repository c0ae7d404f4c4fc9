// What plots of a target over parameters share.
import type { LineageRow } from "../api/lineages";
import type { Axis } from "./parallel";

// Where the axes of a small plot stand: as far in as their labels need.
export const frame = { left: 6, right: 14, top: 10, bottom: 6, outerBoundsMode: "same" as const, outerBoundsContain: "axisLabel" as const };

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
