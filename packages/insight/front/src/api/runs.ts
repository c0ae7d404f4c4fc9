import { address, get, of, type Value } from "./http";

export interface RunRow {
  run: string;
  created: number;
  updated: number;
  step: number | null;
  tags: Record<string, number>;
  broken: number;
}

export interface RunList {
  base: string;
  loading: boolean;
  runs: RunRow[];
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
export const tags = (run: string) => get<TagList>(`${of(run)}/tags`);

// Calls back with the names of runs that have changed, until the result is called.
export function changes(each: (runs: string[]) => void): () => void {
  const source = new EventSource(address("stream"));
  source.onmessage = (message) => each((JSON.parse(message.data) as { runs: string[] }).runs);
  return () => source.close();
}
