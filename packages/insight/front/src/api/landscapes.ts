import { get, of, type Value } from "./http";

export interface LandscapeRow {
  tag: string;
  time: number;
  steps: number[]; // of the path; none: around the trained weights
  decomposition: string;
  unit: string;
  steps_per_epoch: number;
}

export interface Landscape extends LandscapeRow {
  run: string;
  x: Value[];
  y: Value[];
  z: Value[][]; // a row for each y
  path: Record<"x" | "y" | "z", Value[]> | null;
  end: [Value, Value, Value] | null;
}

export const landscapes = async (run: string) => (await get<{ landscapes: LandscapeRow[] }>(`${of(run)}/landscapes`)).landscapes;
export const landscape = (run: string, tag: string) => get<Landscape>(`${of(run)}/landscapes/view`, { tag });

// The interval that a landscape shows: it names the same part of several runs.
export const intervalOf = (row: LandscapeRow) => (row.steps.length ? `${row.steps[0]}-${row.steps.at(-1)}` : "result");
