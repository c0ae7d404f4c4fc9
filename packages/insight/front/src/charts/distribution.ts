// Drawings of a distribution over steps on a canvas: ridges, heat map, quantile bands.
import type { Distributions } from "../api/media";

export const views = ["top", "front", "heat", "bands"] as const;
export type View = (typeof views)[number];
export const verticals = ["step", "relative", "absolute"] as const;
export type Vertical = (typeof verticals)[number];

export interface Colours {
  ink: string;
  quiet: string;
  line: string;
  accent: string;
  surface: string;
  alarm: string;
}

export interface Hover {
  row: number;
  bucket: number;
}

export const short = (value: number) => (value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4))));

const margin = { left: 14, right: 74, top: 14, bottom: 24 };

// Where a step lies on the vertical axis, 0 to 1.
export function places(data: Distributions, vertical: Vertical): number[] {
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

interface Frame {
  width: number;
  height: number;
  top: number; // of the lowest place of the earliest ridge
  bottom: number;
  depth: number; // how far the earliest ridge is shifted to the right
}

function frameOf(width: number, height: number, view: View): Frame {
  const tall = height - margin.top - margin.bottom;
  const shift = view === "top" ? Math.min(0.55 * tall, 0.25 * (width - margin.left - margin.right)) : 0;
  return { width: width - margin.left - margin.right - shift, height: view === "top" ? tall - shift : tall, top: height - margin.bottom - shift, bottom: height - margin.bottom, depth: shift };
}

export function draw(ctx: CanvasRenderingContext2D, width: number, height: number, data: Distributions, view: View, vertical: Vertical, logarithmic: boolean, colours: Colours, language: string, hover?: Hover): void {
  ctx.clearRect(0, 0, width, height);
  ctx.font = "11px system-ui";
  const at = places(data, vertical);
  if (view === "bands") bands(ctx, width, height, data, at, colours, vertical, language);
  else {
    if (view === "heat") heat(ctx, width, height, data, at, logarithmic, colours);
    else ridges(ctx, width, height, data, view, at, logarithmic, colours, hover);
    below(ctx, width, height, data.edges[0]!, data.edges.at(-1)!, view, colours);
    if (view !== "front") beside(ctx, width, height, data, view, at, vertical, colours, language);
  }
}

const heightOf = (count: number, most: number, logarithmic: boolean) => (most <= 0 ? 0 : logarithmic ? Math.log1p(count) / Math.log1p(most) : count / most);
const greatest = (counts: number[][]) => counts.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 0);

function ridges(ctx: CanvasRenderingContext2D, width: number, height: number, data: Distributions, view: View, at: number[], logarithmic: boolean, colours: Colours, hover?: Hover): void {
  const frame = frameOf(width, height, view);
  const most = greatest(data.counts);
  data.counts.forEach((row, i) => {
    const base = frame.top + (frame.bottom - frame.top) * at[i]!;
    const left = margin.left + frame.depth * (1 - at[i]!);
    ctx.beginPath();
    ctx.moveTo(left, base);
    row.forEach((count, k) => ctx.lineTo(left + (frame.width * (k + 0.5)) / row.length, base - frame.height * heightOf(count, most, logarithmic)));
    ctx.lineTo(left + frame.width, base);
    ctx.closePath();
    const marked = hover?.row === i;
    ctx.globalAlpha = view === "top" ? 0.92 : 0.1;
    ctx.fillStyle = view === "top" ? mix(colours.accent, colours.surface, 0.25 + 0.6 * at[i]!) : colours.accent;
    ctx.fill();
    ctx.globalAlpha = view === "top" || marked ? 1 : 0.3 + 0.7 * at[i]!;
    ctx.strokeStyle = marked ? colours.alarm : view === "top" ? colours.surface : colours.accent;
    ctx.lineWidth = marked ? 2 : 1;
    ctx.stroke();
    ctx.globalAlpha = 1;
  });
}

function heat(ctx: CanvasRenderingContext2D, width: number, height: number, data: Distributions, at: number[], logarithmic: boolean, colours: Colours): void {
  const frame = frameOf(width, height, "heat");
  const most = greatest(data.counts);
  data.counts.forEach((row, i) => {
    const from = i ? (at[i - 1]! + at[i]!) / 2 : 0;
    const to = i + 1 < at.length ? (at[i]! + at[i + 1]!) / 2 : 1;
    row.forEach((count, k) => {
      ctx.fillStyle = mix(colours.surface, colours.accent, heightOf(count, most, logarithmic));
      ctx.fillRect(margin.left + (frame.width * k) / row.length, margin.top + frame.height * from, frame.width / row.length + 0.5, Math.max(1, frame.height * (to - from) + 0.5));
    });
  });
}

function bands(ctx: CanvasRenderingContext2D, width: number, height: number, data: Distributions, at: number[], colours: Colours, vertical: Vertical, language: string): void {
  const known = data.quantiles.flatMap((values, i) => (values ? [{ values, x: margin.left + (width - margin.left - margin.right) * at[i]!, row: i }] : []));
  if (!known.length) return;
  const low = Math.min(...known.map((one) => one.values[0]!));
  const high = Math.max(...known.map((one) => one.values.at(-1)!));
  const y = (value: number) => height - margin.bottom - ((height - margin.top - margin.bottom) * (value - low)) / (high - low || 1);
  for (let k = 0; k < 4; ++k) {
    ctx.beginPath();
    known.forEach((one, i) => (i ? ctx.lineTo(one.x, y(one.values[k]!)) : ctx.moveTo(one.x, y(one.values[k]!))));
    [...known].reverse().forEach((one) => ctx.lineTo(one.x, y(one.values[8 - k]!)));
    ctx.closePath();
    ctx.globalAlpha = 0.18;
    ctx.fillStyle = colours.accent;
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  ctx.beginPath();
  known.forEach((one, i) => (i ? ctx.lineTo(one.x, y(one.values[4]!)) : ctx.moveTo(one.x, y(one.values[4]!))));
  ctx.strokeStyle = colours.accent;
  ctx.lineWidth = 1.8;
  ctx.stroke();
  ctx.fillStyle = colours.quiet;
  ctx.textAlign = "left";
  for (const value of [low, (low + high) / 2, high]) ctx.fillText(short(value), width - margin.right + 8, y(value) + 4);
  ctx.textAlign = "center";
  for (const row of new Set([0, data.steps.length - 1])) ctx.fillText(labelOf(data, row, vertical, language), Math.max(30, margin.left + (width - margin.left - margin.right) * at[row]!), height - 8);
}

function below(ctx: CanvasRenderingContext2D, width: number, height: number, low: number, high: number, view: View, colours: Colours): void {
  const frame = frameOf(width, height, view);
  ctx.fillStyle = colours.quiet;
  ctx.textAlign = "center";
  const parts = frame.width > 260 ? 4 : 2;
  for (let k = 0; k <= parts; ++k) ctx.fillText(short(low + ((high - low) * k) / parts), Math.max(22, margin.left + (frame.width * k) / parts), height - 8);
}

function beside(ctx: CanvasRenderingContext2D, width: number, height: number, data: Distributions, view: View, at: number[], vertical: Vertical, colours: Colours, language: string): void {
  const frame = frameOf(width, height, view);
  ctx.fillStyle = colours.quiet;
  ctx.textAlign = "left";
  let free = -Infinity;
  at.forEach((place, i) => {
    const y = view === "top" ? frame.top + (frame.bottom - frame.top) * place : margin.top + frame.height * place;
    if (y - free < 13) return;
    free = y;
    ctx.fillText(labelOf(data, i, vertical, language), margin.left + frame.width + frame.depth * (1 - place) + 8, y + 4);
  });
}

// The ridge or row, and the bucket, under the pointer.
export function under(x: number, y: number, width: number, height: number, data: Distributions, view: View, vertical: Vertical, logarithmic: boolean): Hover | undefined {
  if (view === "bands" || !data.counts.length) return undefined;
  const frame = frameOf(width, height, view);
  const at = places(data, vertical);
  const most = greatest(data.counts);
  let best: Hover | undefined;
  let nearest = Infinity;
  data.counts.forEach((row, row_) => {
    const place = at[row_]!;
    const bucket = Math.floor(((x - margin.left - (view === "top" ? frame.depth * (1 - place) : 0)) / frame.width) * row.length);
    if (bucket < 0 || bucket >= row.length) return;
    const base = view === "heat" ? margin.top + frame.height * place : frame.top + (frame.bottom - frame.top) * place - frame.height * heightOf(row[bucket]!, most, logarithmic);
    const distance = Math.abs(base - y);
    if (distance <= nearest) (nearest = distance), (best = { row: row_, bucket });
  });
  return best;
}

function mix(from: string, to: string, share: number): string {
  // A style sheet that was made small has #fff for #ffffff.
  const [a, b] = [from, to].map((text) => (text.length === 4 ? [1, 2, 3].map((i) => 17 * parseInt(text[i]!, 16)) : [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16))));
  return `rgb(${a!.map((value, i) => Math.round(value + (b![i]! - value) * share)).join(" ")})`;
}
