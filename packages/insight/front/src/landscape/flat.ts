// A landscape from above: lines of equal loss, or a shaded relief, with the path.
import { short as brief } from "../charts/distribution";
import { short } from "../charts/curves";
import { colourOf, css, type Palette } from "./colours";
import { isoline, lossAt, type Field, type Heights } from "./field";

export interface Inks {
  ink: string;
  quiet: string;
  line: string;
  surface: string;
  alarm: string;
}

export interface Look {
  palette: Palette;
  heights: Heights;
  levels: number[];
  path: number; // points of the path that are drawn
  inks: Inks;
}

export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

const margin = { left: 58, right: 70, top: 12, bottom: 26 };
export const frameOf = (width: number, height: number): Frame => ({ left: margin.left, top: margin.top, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom });

// From a column and a row to the canvas: rows go upwards.
const place = (frame: Frame, field: Field, column: number, row: number): [number, number] => [
  frame.left + (frame.width * column) / (field.columns - 1 || 1),
  frame.top + frame.height * (1 - row / (field.rows - 1 || 1)),
];
const share = (axis: number[], value: number) => ((value - axis[0]!) / (axis.at(-1)! - axis[0]! || 1)) * (axis.length - 1);

// Column and row under a point of the canvas.
export function under(frame: Frame, field: Field, x: number, y: number): [number, number] {
  return [((x - frame.left) / frame.width) * (field.columns - 1), (1 - (y - frame.top) / frame.height) * (field.rows - 1)];
}

export function drawFlat(ctx: CanvasRenderingContext2D, width: number, height: number, field: Field, look: Look, relief: boolean): void {
  const frame = frameOf(width, height);
  ctx.clearRect(0, 0, width, height);
  ctx.font = "11px system-ui";
  if (relief) shade(ctx, frame, field, look);
  for (const level of look.levels) {
    ctx.beginPath();
    for (const [x0, y0, x1, y1] of isoline(field, level)) {
      ctx.moveTo(...place(frame, field, x0!, y0!));
      ctx.lineTo(...place(frame, field, x1!, y1!));
    }
    ctx.lineWidth = relief ? 0.6 : 1.3;
    ctx.globalAlpha = relief ? 0.45 : 1;
    ctx.strokeStyle = relief ? "#000" : css(colourOf(look.palette, look.heights.of(level)));
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = look.inks.line;
  ctx.lineWidth = 1;
  ctx.strokeRect(frame.left, frame.top, frame.width, frame.height);
  const at = (one: { x: number; y: number }) => place(frame, field, share(field.x, one.x), share(field.y, one.y));
  drawPath(ctx, field.path.slice(0, look.path).map(at), field.end && at(field.end), look.inks);
  axes(ctx, frame, field, look);
}

function shade(ctx: CanvasRenderingContext2D, frame: Frame, field: Field, look: Look): void {
  const [width, height] = [Math.max(1, Math.round(frame.width)), Math.max(1, Math.round(frame.height))];
  const image = new ImageData(width, height);
  const steep = 0.4 * (Math.max(field.columns, field.rows) - 1); // from the lowest to the greatest over an edge: 0.4
  const rise = (from: number, to: number) => (look.heights.of(to) - look.heights.of(from)) * steep || 0;
  for (let j = 0; j < height; j++)
    for (let i = 0; i < width; i++) {
      const column = (i / (width - 1 || 1)) * (field.columns - 1);
      const row = (1 - j / (height - 1 || 1)) * (field.rows - 1);
      const loss = lossAt(field, column, row);
      if (Number.isNaN(loss)) continue;
      const level = look.heights.of(loss);
      // Light from the upper left, by differences of heights.
      const [left, low] = [Math.max(0, column - 0.5), Math.max(0, row - 0.5)];
      const dx = rise(lossAt(field, left, row), lossAt(field, Math.min(field.columns - 1, left + 1), row));
      const dy = rise(lossAt(field, column, low), lossAt(field, column, Math.min(field.rows - 1, low + 1)));
      const light = (1 + 0.6 * (dx - dy)) / Math.hypot(1, dx, dy);
      const bright = Math.min(1.25, Math.max(0.55, 0.6 + 0.45 * light));
      const colour = colourOf(look.palette, level);
      image.data.set([...colour.map((c) => Math.min(255, c * bright)), 255], 4 * (j * width + i));
    }
  const sheet = new OffscreenCanvas(width, height);
  sheet.getContext("2d")!.putImageData(image, 0, 0);
  ctx.drawImage(sheet, frame.left, frame.top, frame.width, frame.height);
}

// Points of a path on the canvas, and where the trained weights are.
export function drawPath(ctx: CanvasRenderingContext2D, points: [number, number][], end: [number, number] | null, inks: Inks): void {
  const stroke = (colour: string, width: number) => ((ctx.strokeStyle = colour), (ctx.lineWidth = width), ctx.stroke());
  ctx.lineJoin = "round";
  ctx.beginPath();
  points.forEach((point, i) => (i ? ctx.lineTo(...point) : ctx.moveTo(...point)));
  stroke(inks.surface, 4);
  stroke(inks.alarm, 2);
  for (const [x, y] of points) {
    ctx.beginPath();
    ctx.arc(x, y, 3, 0, 7);
    ctx.fillStyle = inks.alarm;
    ctx.fill();
    stroke(inks.surface, 1);
  }
  if (!end) return;
  ctx.beginPath();
  for (let i = 0; i < 10; i++) {
    const [angle, far] = [(i * Math.PI) / 5 - Math.PI / 2, i % 2 ? 3.5 : 8];
    const [x, y] = [end[0] + far * Math.cos(angle), end[1] + far * Math.sin(angle)];
    if (i) ctx.lineTo(x, y);
    else ctx.moveTo(x, y);
  }
  ctx.closePath();
  ctx.fillStyle = inks.ink;
  ctx.fill();
  stroke(inks.surface, 1.2);
}

function axes(ctx: CanvasRenderingContext2D, frame: Frame, field: Field, look: Look): void {
  ctx.fillStyle = look.inks.quiet;
  const parts = frame.width > 260 ? 4 : 2;
  for (let i = 0; i <= parts; i++) {
    const of = (axis: number[]) => brief(axis[0]! + ((axis.at(-1)! - axis[0]!) * i) / parts);
    ctx.textAlign = "center";
    ctx.fillText(of(field.x), frame.left + (frame.width * i) / parts, frame.top + frame.height + 17);
    ctx.textAlign = "right";
    ctx.fillText(of(field.y), frame.left - 6, frame.top + frame.height * (1 - i / parts) + 4);
  }
  scale(ctx, frame.left + frame.width + 12, frame.top, frame.height, look);
}

// Which colour is which loss.
export function scale(ctx: CanvasRenderingContext2D, x: number, y: number, height: number, look: Look): void {
  for (let i = 0; i < height; i++) {
    ctx.fillStyle = css(colourOf(look.palette, 1 - i / height));
    ctx.fillRect(x, y + i, 10, 1.5);
  }
  ctx.fillStyle = look.inks.quiet;
  ctx.textAlign = "left";
  for (const part of [0, 0.5, 1]) ctx.fillText(short(look.heights.loss(part)), x + 14, y + height * (1 - part) + (part === 1 ? 10 : part ? 4 : 0));
}
