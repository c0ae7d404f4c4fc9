import { get, of, send, type Value } from "./http";

export type Cell = Value | string | boolean | null;

export interface Column {
  name: string;
  type: "number" | "text" | "mixed";
}

// An operator of a pipeline: parameters by name, `operations`, `sampler` and `children`.
export interface Pipeline {
  op_type?: string;
  children?: Pipeline[];
  [parameter: string]: unknown;
}

export interface LineageRow {
  run: string;
  updated: number;
  dataset: number | null;
  values: Record<string, Cell>;
  remark: string | null;
  tag: number;
}

export interface LineageTable {
  loading: boolean;
  columns: Column[];
  datasets: Pipeline[];
  rows: LineageRow[];
}

export interface Target {
  targets: string[];
  target: string;
  count: number;
  buckets: [left: number, width: number, count: number][];
  parameters: { name: string; correlation: number; reason: number; information: number; forest?: number | null; forest_reason?: number }[];
}

export const lineages = (query: string) => get<LineageTable>("lineages", { query });
export const target = (name: string, query: string, forest: boolean) => get<Target>("targets", { target: name, query, forest: String(forest) });

export interface Note {
  remark: string | null;
  tag: number;
  labels: string[];
  archived: boolean;
}
export const note = (run: string, changes: Partial<Note>) => send<Note>("PUT", `${of(run)}/notes`, changes);
