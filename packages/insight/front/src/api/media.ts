import { address, get, of, type Value } from "./http";

export interface Media {
  samples: number;
  steps: number[];
  times: number[];
  sizes: [number, number][];
  layers?: boolean; // whether there are boxes or masks over images
}

// Boxes, in pixels from the upper left corner, and the mask over an image; `left_out`: boxes that are not told.
export interface Layer {
  name: string;
  boxes: { x: number; y: number; width: number; height: number; label: string; score: number | null }[];
  left_out: number;
  mask: boolean;
  classes: Record<string, string>;
}

export interface Distributions {
  tag: string;
  count: number;
  begin?: number; // missing in a report, which has no other steps
  steps: number[];
  times: number[];
  edges: number[];
  counts: number[][];
  quantiles: (number[] | null)[];
  nan: number[];
  positive_infinity: number[];
  negative_infinity: number[];
}

export type Statistics = Record<"max" | "min" | "avg" | "count" | "nan_count" | "pos_inf_count" | "neg_inf_count" | "zero_count", number | null>;

export interface TensorSlice {
  steps: number[];
  times: number[];
  step: number;
  dtype: string;
  shape: number[];
  dims: string;
  free: { dimension: number; start: number; size: number }[];
  rows: Value[][];
  statistics: Statistics;
  overall: Statistics;
}

export interface Texts {
  count: number;
  first: number;
  values: { step: number; time: number; rows: string[][] }[];
}

export const media = (run: string, kind: "image" | "audio", tag: string) => get<Media>(`${of(run)}/media`, { kind, tag });
export const fileOf = (run: string, kind: "image" | "audio", tag: string, step: number, sample: number) => address(`${of(run)}/${kind}`, { tag, step, sample }).href;
export const layersOf = async (run: string, tag: string, step: number) => (await get<{ layers: Layer[] }>(`${of(run)}/image/layers`, { tag, step })).layers;
export const maskOf = (run: string, tag: string, step: number, layer: number) => address(`${of(run)}/image/mask`, { tag, step, layer }).href;
// `begin`: place of the first of consecutive steps, -1 for steps spread over all.
export const distributions = (run: string, tag: string, tensor: boolean, begin: number) => get<Distributions>(`${of(run)}/histograms`, { tag, tensor: String(tensor), begin });
export const tensor = (run: string, tag: string, step: number | undefined, dims: string) => get<TensorSlice>(`${of(run)}/tensor`, { tag, dims, ...(step === undefined ? {} : { step }) });
export const texts = (run: string, tag: string, before: number) => get<Texts>(`${of(run)}/texts`, { tag, before });

// What a file's address answers instead of an image or a sound.
export async function refusal(href: string): Promise<string> {
  const answer = await fetch(href, { credentials: "same-origin" });
  return answer.ok ? answer.statusText : ((await answer.json().catch(() => ({}))) as { error?: string }).error ?? answer.statusText;
}
