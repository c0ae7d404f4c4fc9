// How the curves of a page are drawn, as its address says.
import { smoothers, type Drawing, type Range, type Smoother } from "../api/scalars";
import { choice, route } from "../route.svelte";
import { axes, type XAxis } from "./curves";

export interface Options {
  axis: XAxis;
  x: string; // the scalar that is the axis
  logX: boolean;
  smoother: Smoother;
  smoothing: number;
  clip: boolean;
  table: boolean; // least, greatest and last values below each chart
}

export const limits: Record<Smoother, { max: number; slide: number; step: number }> = {
  ema: { max: 0.99, slide: 0.99, step: 0.01 },
  average: { max: 100_000, slide: 500, step: 1 },
  gaussian: { max: 100_000, slide: 500, step: 1 },
};

export function options(): Options {
  const smoother = choice("smoother", smoothers);
  const amount = Number(route.query.get("smoothing")) || 0;
  return {
    axis: choice("axis", [...axes, "scalar"] as const),
    x: route.query.get("x") ?? "",
    logX: route.query.get("xlog") === "1",
    smoother,
    smoothing: Math.min(limits[smoother].max, Math.max(0, smoother === "ema" ? amount : Math.round(amount))),
    clip: route.query.get("clip") === "1",
    table: route.query.get("table") === "1",
  };
}

const MOST_COLUMNS = 60_000; // of all curves of a chart together

export const drawingOf = (options: Options, width: number, curves: number, range?: Range): Drawing => ({
  axis: options.axis === "absolute" ? "time" : options.axis,
  x: options.x,
  smoother: options.smoother,
  smoothing: options.smoothing,
  columns: Math.max(30, Math.min(Math.round(width / 10) * 10, Math.floor(MOST_COLUMNS / Math.max(1, curves)))),
  range,
});
