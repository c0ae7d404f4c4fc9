// The service's own interface; see /api/v1/openapi.json.

export type Value = number | "NaN" | "Infinity" | "-Infinity";

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

export interface Series {
  tag: string;
  count: number;
  steps: number[];
  times: number[];
  values: Value[];
  smoothed?: Value[];
  first_time: number;
}

export class ServiceError extends Error {}

// The page lies at <prefix>/, whatever that is.
const root = new URL("./api/v1/", document.baseURI);

async function get<T>(path: string, query: Record<string, string | number> = {}): Promise<T> {
  const url = new URL(path, root);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  const answer = await fetch(url, { credentials: "same-origin" });
  const body = await answer.json().catch(() => ({ error: answer.statusText }));
  if (!answer.ok) throw new ServiceError(body.error ?? answer.statusText);
  return body as T;
}

const of = (run: string) => `runs/${run.split("/").map(encodeURIComponent).join("/")}`;

export const runs = () => get<RunList>("runs");
export const tags = (run: string) => get<TagList>(`${of(run)}/tags`);

export interface Range {
  from: number;
  to: number;
}

// Points of a scalar as `columns` columns of pixels show them.
export async function scalar(run: string, tag: string, axis: "step" | "time", columns: number, smoothing: number, range?: Range): Promise<Series> {
  const limits: Record<string, number> = range ? { from: range.from, to: range.to } : {};
  const found = await get<{ series: Series[] }>(`${of(run)}/scalars`, { tag, axis, points: columns, smoothing, ...limits });
  return found.series[0]!;
}

// Calls back with the names of runs that have changed, until the result is called.
export function changes(each: (runs: string[]) => void): () => void {
  const source = new EventSource(new URL("stream", root));
  source.onmessage = (message) => each((JSON.parse(message.data) as { runs: string[] }).runs);
  return () => source.close();
}
