import { address, get, type Value } from "./http";

export interface Series {
  run: string;
  tag: string;
  count: number;
  steps: number[];
  times: number[];
  values: Value[];
  smoothed?: Value[];
  x?: Value[]; // of the scalar that is the axis
  first_time: number;
}

export interface Range {
  from: number;
  to: number;
}

export const smoothers = ["ema", "average", "gaussian"] as const;
export type Smoother = (typeof smoothers)[number];

// How curves are drawn: over what, how smooth, in how many columns of pixels, from where to where.
export interface Drawing {
  axis: "step" | "relative" | "time" | "scalar";
  x: string; // the scalar that is the axis
  smoother: Smoother;
  smoothing: number; // ema: weight of what came before; else a width in points
  columns: number;
  range?: Range | undefined;
}

// Tags of scalars of all runs: many runs have the same ones.
export interface Comparison {
  loading: boolean;
  sets: string[][];
  runs: { run: string; created: number; set: number; archived: boolean }[];
}

const asked = (drawing: Drawing) => ({
  axis: drawing.axis,
  smoother: drawing.smoother,
  smoothing: drawing.smoothing,
  points: drawing.columns,
  ...(drawing.axis === "scalar" ? { x: drawing.x } : {}),
  ...(drawing.range ?? {}),
});

// Points of a scalar of several runs, of those that have it.
export async function curves(runs: string[], tag: string, drawing: Drawing): Promise<Series[]> {
  return (await get<{ series: Series[] }>("scalars", { run: runs, tag, ...asked(drawing) })).series;
}

export const comparison = (query: string) => get<Comparison>("comparison", { query });

// A file with every point, for a link.
export const tableOf = (runs: string[], tags: string[]): string => address("scalars.csv", { run: runs, tag: tags }).href;
