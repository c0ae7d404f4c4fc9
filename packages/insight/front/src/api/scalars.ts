import { get, of, type Value } from "./http";

export interface Series {
  tag: string;
  count: number;
  steps: number[];
  times: number[];
  values: Value[];
  smoothed?: Value[];
  first_time: number;
}

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
