import { address, get, of, ServiceError } from "./http";

export interface EmbeddingRow {
  id: string;
  name: string;
  steps: number[];
  shape: number[];
}

export interface Labels {
  count: number;
  dimensions: number;
  rows: number[]; // places in what was recorded
  columns: string[];
  labels: string[][];
  trouble: string;
  variance: number[];
}

export interface Which {
  run: string;
  embedding: string;
  step: number | undefined;
}

const queryOf = ({ embedding, step }: Which) => ({ embedding, ...(step === undefined ? {} : { step }) });

async function bytes(path: string, query: Record<string, string | number>): Promise<ArrayBuffer> {
  const answer = await fetch(address(path, query), { credentials: "same-origin" });
  if (!answer.ok) throw new ServiceError(((await answer.json().catch(() => ({}))) as { error?: string }).error ?? answer.statusText);
  return answer.arrayBuffer();
}

export const embeddings = async (run: string) => (await get<{ embeddings: EmbeddingRow[] }>(`${of(run)}/embeddings`)).embeddings;
export const labels = (which: Which) => get<Labels>(`${of(which.run)}/embeddings/labels`, queryOf(which));
// Coordinates on principal axes, row after row.
export const points = async (which: Which) => new Float32Array(await bytes(`${of(which.run)}/embeddings/points`, queryOf(which)));
export const neighbours = (which: Which, place: number, count: number, metric: string) =>
  get<{ places: number[]; distances: number[] }>(`${of(which.run)}/embeddings/neighbours`, { ...queryOf(which), place, count, metric });

// The nearest neighbours of each of `rows` vectors, row after row.
export async function graph(which: Which, rows: number, count: number): Promise<{ places: Int32Array; distances: Float32Array }> {
  const data = await bytes(`${of(which.run)}/embeddings/graph`, { ...queryOf(which), count });
  const half = data.byteLength / 2;
  if (half % (4 * rows)) throw new ServiceError("the vectors have changed; load the page again");
  return { places: new Int32Array(data, 0, half / 4), distances: new Float32Array(data, half) };
}
