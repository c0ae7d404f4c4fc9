import { address, get, of, send, type Value } from "./http";
import type { Pipeline } from "./lineages";

export type Status = "running" | "finished" | "stalled" | "failed" | "unknown";

export interface RunRow {
  run: string;
  created: number;
  updated: number;
  step: number | null;
  status: Status;
  loss: Value | null; // the last one
  best: { name: string; value: Value; step: number | null; greatest: boolean } | null; // of a metric
  remark: string | null;
  tag: number;
  labels: string[];
  archived: boolean;
  has_lineage: boolean;
  tags: Record<string, number>;
  dumps: string[]; // in its folder, as the debugger opens them
  broken: number;
}

export interface RunList {
  base: string;
  loading: boolean;
  may_delete: boolean;
  runs: RunRow[];
}

// One run, with what it was made of.
export interface RunFacts extends RunRow {
  values: Record<string, Value | string | boolean | null>;
  dataset: Pipeline;
}

export interface RunFiles {
  folder: string;
  may_delete: boolean;
  files: { name: string; size: number }[];
}

export interface TagRow {
  tag: string;
  count: number;
  first_step: number;
  last_step: number;
  first_time: number;
  last_time: number;
  last_value?: Value;
}

export interface TagList {
  run: string;
  kinds: Record<string, TagRow[]>;
  broken: { file: string; records: number; first: { offset: number; what: string }[] }[];
}

export const runs = (query = "") => get<RunList>("runs", { query });
export const factsOf = (run: string) => get<RunFacts>(`${of(run)}/about`);
export const filesOf = (run: string) => get<RunFiles>(`${of(run)}/files`);
export const remove = (run: string) => send<{ deleted: string[] }>("DELETE", of(run), undefined, { confirm: run });
export const tags = (run: string) => get<TagList>(`${of(run)}/tags`);

// Calls back with the names of runs that have changed, until the result is called.
export function changes(each: (runs: string[]) => void): () => void {
  const source = new EventSource(address("stream"));
  source.onmessage = (message) => each((JSON.parse(message.data) as { runs: string[] }).runs);
  return () => source.close();
}
