// Stands in a report for ../api/http: what the service would answer lies in the file itself.
import type { Distributions, Layer, Media, Texts } from "../api/media";
import type { Series } from "../api/scalars";

export type Value = number | "NaN" | "Infinity" | "-Infinity";
export type Query = Record<string, string | number | string[]>;
export class ServiceError extends Error {}

export interface Part {
  name: string;
  step: number | null;
  updated: number;
  values: Record<string, string | number | boolean | null>;
  scalars: Record<string, Series>;
  histograms: Record<string, Distributions>;
  media: Record<string, Media>;
  images: Record<string, Record<string, string>>; // by tag, then by step/sample: addresses with the file in them
  layers: Record<string, Record<string, { layers: Layer[]; masks: string[] }>>; // over images, by tag, then by step
  texts: Record<string, Texts>;
}

export interface Report {
  title: string;
  created: number;
  columns: string[];
  left: string[]; // what the file has no room for
  runs: Part[];
}

export const report = JSON.parse(document.getElementById("report-data")!.textContent!) as Report;
const parts = new Map(report.runs.map((part) => [part.name, part]));

const own = <T>(table: Record<string, T>, name: string): T | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);

// runs/<name>/<what>; of what lies over images <what> is image/layers or image/mask.
function asked(path: string): { part: Part; what: string } {
  const over = /\/image\/(?:layers|mask)$/.exec(path)?.[0] ?? "";
  const names = path.slice(0, path.length - over.length).split("/").map(decodeURIComponent);
  const what = over ? over.slice(1) : names.pop()!;
  const part = parts.get(names.slice(1).join("/"));
  if (!part) throw new ServiceError(path);
  return { part, what };
}

const over = (part: Part, query: Query) => own(own(part.layers, String(query.tag)) ?? {}, String(query.step));

export const of = (run: string) => `runs/${run.split("/").map(encodeURIComponent).join("/")}`;

export async function get<T>(path: string, query: Query = {}): Promise<T> {
  const tag = String(query.tag);
  if (path === "scalars") {
    const names = Array.isArray(query.run) ? query.run : [String(query.run)];
    const found = names.flatMap((name) => {
      const series = own(parts.get(name)?.scalars ?? {}, tag);
      return series ? [shown({ ...series, run: name }, query)] : [];
    });
    return { series: found } as T;
  }
  const { part, what } = asked(path);
  if (what === "image/layers") return { layers: over(part, query)?.layers ?? [] } as T;
  const found = what === "histograms" ? own(part.histograms, tag) : what === "media" ? own(part.media, tag) : what === "texts" ? own(part.texts, tag) : undefined;
  if (!found) throw new ServiceError(tag);
  return found as T;
}

export async function send<T>(): Promise<T> {
  throw new ServiceError("a report is only read");
}

export function address(path: string, query: Query = {}): URL {
  const { part, what } = asked(path);
  if (what === "image/mask") return new URL(over(part, query)?.masks[Number(query.layer)] || "data:,");
  return new URL(own(own(part.images, String(query.tag)) ?? {}, `${query.step}/${query.sample}`) ?? "data:,");
}

const numberOf = (value: Value): number => (typeof value === "number" ? value : value === "NaN" ? NaN : value === "Infinity" ? Infinity : -Infinity);

// Smoothing is that of the service, over the points that the file has.
function shown(series: Series, query: Query): Series {
  const weight = Number(query.smoothing) || 0;
  let smoothed: Value[] | undefined;
  if (weight) {
    let sum = 0;
    let share = 1;
    smoothed = series.values.map((value) => {
      const one = numberOf(value);
      if (!Number.isFinite(one)) return value;
      sum = sum * weight + (1 - weight) * one;
      share *= weight;
      return sum / (1 - share);
    });
  }
  const x = query.axis === "time" ? series.times : query.axis === "relative" ? series.times.map((time) => time - series.first_time) : series.steps;
  const [from, to] = [Number(query.from ?? -Infinity), Number(query.to ?? Infinity)];
  const kept = x.flatMap((at, i) => (at >= from && at <= to ? [i] : []));
  const pick = <T>(all: T[]) => kept.map((i) => all[i]!);
  return { ...series, steps: pick(series.steps), times: pick(series.times), values: pick(series.values), ...(smoothed ? { smoothed: pick(smoothed) } : {}) };
}
