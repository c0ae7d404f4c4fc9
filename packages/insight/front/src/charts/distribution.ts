// A distribution over steps as a chart: ridges one behind the other or over each other, a heat map, quantile bands.
import type { CustomSeriesRenderItem, EChartsOption } from "echarts";
import type { Distributions } from "../api/media";
import type { Inks } from "./inks";

export const views = ["top", "front", "heat", "bands"] as const;
export type View = (typeof views)[number];
export const verticals = ["step", "relative", "absolute"] as const;
export type Vertical = (typeof verticals)[number];

export interface Hover {
  row: number;
  bucket: number;
}

// How a distribution is shown, and in how many pixels.
export interface Shown {
  width: number;
  height: number;
  view: View;
  vertical: Vertical;
  logarithmic: boolean;
  language: string;
}

export const short = (value: number) => (value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4))));

// Where a step lies on the vertical axis, 0 to 1.
function places(data: Distributions, vertical: Vertical): number[] {
  const values = vertical === "step" ? data.steps : data.times;
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  return values.map((value, i) => (values.length === 1 ? 1 : vertical === "step" && new Set(values).size === 1 ? i / (values.length - 1) : (value - low) / span));
}

export function labelOf(data: Distributions, row: number, vertical: Vertical, language: string): string {
  if (vertical === "step") return String(data.steps[row]);
  if (vertical === "relative") return `${short(data.times[row]! - data.times[0]!)} s`;
  return new Date(data.times[row]! * 1000).toLocaleTimeString(language);
}

const margin = { left: 14, right: 74, top: 14, bottom: 24 };

// Where the last step's ridge stands, and how far the first one is shifted from it, to the right and upwards.
function frameOf({ width, height, view }: Shown) {
  const [wide, tall] = [width - margin.left - margin.right, height - margin.top - margin.bottom];
  const shift = view === "top" ? Math.min(0.55 * tall, 0.25 * wide) : 0;
  return { left: margin.left, top: margin.top + shift, width: wide - shift, height: tall - shift, shift };
}

const heightOf = (count: number, most: number, logarithmic: boolean) => (most <= 0 ? 0 : logarithmic ? Math.log1p(count) / Math.log1p(most) : count / most);
const greatest = (counts: number[][]) => counts.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 0);
const middle = (edges: number[], bucket: number) => (edges[bucket]! + edges[bucket + 1]!) / 2;

export function optionOf(data: Distributions, shown: Shown, inks: Inks): EChartsOption {
  const at = places(data, shown.vertical);
  const label = (row: number) => labelOf(data, row, shown.vertical, shown.language);
  if (shown.view === "bands") return bands(data, at, label, inks);
  const { shift, ...grid } = frameOf(shown);
  const most = greatest(data.counts);
  const heights = data.counts.map((row) => row.map((count) => heightOf(count, most, shown.logarithmic)));
  const isHeat = shown.view === "heat";
  // Steps of a heat map go down; the heights of ridges have no axis.
  const down = { type: "value", position: "right", inverse: true, min: 0, max: 1, splitLine: { show: false }, axisLine: { show: false }, axisTick: { show: false }, axisLabel: { customValues: at, hideOverlap: true, formatter: (place: number) => label(at.indexOf(place)) } };
  const across = { type: "value", min: data.edges[0], max: data.edges.at(-1), splitLine: { show: false }, splitNumber: grid.width > 260 ? 5 : 3, axisLabel: { formatter: short, hideOverlap: true } };
  const renderItem = isHeat ? rows(data.edges, at, heights, inks) : ridges(data.edges, at, heights, label, shift, shown.view === "top", inks);
  return {
    grid,
    xAxis: across,
    yAxis: isHeat ? down : { type: "value", min: 0, max: 1, show: false },
    series: [{ type: "custom", id: "steps", silent: true, data: at.map((_, row) => row), encode: { x: [], y: [], tooltip: [] }, renderItem }],
  } as EChartsOption;
}

function ridges(edges: number[], at: number[], heights: number[][], label: (row: number) => string, shift: number, isBehind: boolean, inks: Inks): CustomSeriesRenderItem {
  let free = -Infinity; // above the last label
  return ({ dataIndex: row }, api) => {
    const away = shift * (1 - at[row]!);
    const spot = (x: number, height: number) => {
      const [left, top] = api.coord([x, height]) as [number, number];
      return [left + away, top - away];
    };
    const points = [spot(edges[0]!, 0), ...heights[row]!.map((height, bucket) => spot(middle(edges, bucket), height)), spot(edges.at(-1)!, 0)];
    const style = isBehind ? { fill: mix(inks.accent, inks.surface, 0.25 + 0.6 * at[row]!), stroke: inks.surface, opacity: 0.94 } : { fill: translucent(inks.accent, Math.min(0.1, 2 / at.length)), stroke: translucent(inks.accent, 0.3 + 0.7 * at[row]!) };
    const [x, y] = points.at(-1) as [number, number];
    if (row === 0) free = -Infinity;
    const hasRoom = isBehind && y - free >= 13;
    if (hasRoom) free = y;
    const text = { type: "text" as const, style: { text: label(row), x: x + 8, y, verticalAlign: "middle" as const, fill: inks.quiet, fontSize: 11 } };
    return { type: "group", children: [{ type: "polygon", shape: { points }, style: { ...style, lineWidth: 1 }, emphasis: { style: { stroke: inks.alarm, lineWidth: 2 } } }, ...(hasRoom ? [text] : [])] };
  };
}

// A row of a heat map is one rectangle whose colours change at the edges of the buckets: few things to draw.
function rows(edges: number[], at: number[], heights: number[][], inks: Inks): CustomSeriesRenderItem {
  const [low, high] = [edges[0]!, edges.at(-1)!];
  const part = (edge: number) => (edge - low) / (high - low || 1);
  return ({ dataIndex: row }, api) => {
    const from = row ? (at[row - 1]! + at[row]!) / 2 : 0;
    const to = row + 1 < at.length ? (at[row]! + at[row + 1]!) / 2 : 1;
    const [[left, top], [right, bottom]] = [api.coord([low, from]), api.coord([high, to])] as [[number, number], [number, number]];
    const colorStops = heights[row]!.flatMap((height, bucket) => {
      const color = mix(inks.surface, inks.accent, height);
      return [{ offset: part(edges[bucket]!), color }, { offset: part(edges[bucket + 1]!), color }];
    });
    return { type: "rect", shape: { x: left, y: top, width: right - left, height: Math.max(1, bottom - top + 0.5) }, style: { fill: { type: "linear", x: 0, y: 0, x2: 1, y2: 0, colorStops } } };
  };
}

function bands(data: Distributions, at: number[], label: (row: number) => string, inks: Inks): EChartsOption {
  const known = data.quantiles.flatMap((values, row) => (values ? [{ values, x: at[row]!, row }] : []));
  const ends = at.length > 1 ? [0, 1] : at;
  const area: CustomSeriesRenderItem = ({ dataIndex: k }, api) => {
    const side = (quantile: number) => known.map((one) => api.coord([one.x, one.values[quantile]!]));
    return { type: "polygon", shape: { points: [...side(k), ...side(8 - k).reverse()] }, style: { fill: translucent(inks.accent, 0.18) } };
  };
  return {
    grid: margin,
    xAxis: { type: "value", min: 0, max: 1, splitLine: { show: false }, axisTick: { show: false }, axisLabel: { customValues: ends, alignMinLabel: "left", formatter: (place: number) => label(place ? at.length - 1 : 0) } },
    yAxis: { type: "value", position: "right", min: Math.min(...known.map((one) => one.values[0]!)), max: Math.max(...known.map((one) => one.values.at(-1)!)), splitNumber: 4, axisLabel: { formatter: short, hideOverlap: true } },
    series: [
      { type: "line", id: "median", z: 3, symbol: "circle", symbolSize: 4, lineStyle: { width: 1.8 }, itemStyle: { color: inks.accent }, data: known.map((one) => ({ name: label(one.row), value: [one.x, one.values[4]!] })) },
      { type: "custom", id: "bands", z: 2, silent: true, data: known.length ? [0, 1, 2, 3] : [], encode: { x: [], y: [] }, renderItem: area },
    ],
  } as EChartsOption;
}

// The ridge or row, and the bucket, under the pointer.
export function under(x: number, y: number, data: Distributions, shown: Shown): Hover | undefined {
  if (shown.view === "bands" || !data.counts.length) return undefined;
  const frame = frameOf(shown);
  const most = greatest(data.counts);
  const [low, high] = [data.edges[0]!, data.edges.at(-1)!];
  let best: Hover | undefined;
  let nearest = Infinity;
  places(data, shown.vertical).forEach((place, row) => {
    const away = frame.shift * (1 - place);
    const value = low + ((x - frame.left - away) / frame.width) * (high - low);
    const bucket = value < low ? -1 : data.edges.findIndex((edge) => edge > value) - 1;
    if (bucket < 0) return;
    const line = shown.view === "heat" ? frame.height * place : frame.height * (1 - heightOf(data.counts[row]![bucket]!, most, shown.logarithmic)) - away;
    const distance = Math.abs(frame.top + line - y);
    if (distance <= nearest) (nearest = distance), (best = { row, bucket });
  });
  return best;
}

// A style sheet that was made small has #fff for #ffffff.
const parts = (colour: string) => (colour.length === 4 ? [1, 2, 3].map((i) => 17 * parseInt(colour[i]!, 16)) : [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)));
const translucent = (colour: string, alpha: number) => `rgba(${parts(colour).join(", ")}, ${alpha})`;

function mix(from: string, to: string, share: number): string {
  const [a, b] = [parts(from), parts(to)];
  return `rgb(${a.map((value, i) => Math.round(value + (b[i]! - value) * share)).join(", ")})`;
}
