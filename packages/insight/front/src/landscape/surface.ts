// A landscape as a surface in space, drawn from the farthest piece on.
import { short } from "../charts/curves";
import type { Inks } from "../charts/inks";
import { colourOf, css, type Palette } from "./colours";
import { isoline, lossAt, type Field, type Look } from "./field";

export interface Turn {
  yaw: number; // radians
  pitch: number; // from above: a quarter turn
  zoom: number;
}

export const still: Turn = { yaw: 0.7, pitch: 0.6, zoom: 1 };
const FEWEST = 40; // places along an axis that are drawn: between those of the grid if it has less
const MOST = 96;

interface Spot {
  x: number;
  y: number;
  depth: number; // greater is nearer
}

// Puts a place of the grid at a height of 0..1 on the canvas.
export function projection(width: number, height: number, turn: Turn): (across: number, along: number, up: number) => Spot {
  const size = 0.31 * Math.min(width - 70, height * 1.25) * turn.zoom;
  const [cy, sy, cp, sp] = [Math.cos(turn.yaw), Math.sin(turn.yaw), Math.cos(turn.pitch), Math.sin(turn.pitch)];
  return (across, along, up) => {
    const [a, b, c] = [2 * across - 1, 2 * along - 1, 0.9 * (up - 0.5)];
    const [right, away] = [cy * a - sy * b, sy * a + cy * b];
    const depth = cp * -away + sp * c;
    const near = 4 / (4 - depth);
    return { x: (width - 70) / 2 + right * size * near, y: 0.46 * height - (cp * c + sp * away) * size * near, depth };
  };
}

export function drawSurface(ctx: CanvasRenderingContext2D, width: number, height: number, field: Field, look: Look, turn: Turn): void {
  ctx.clearRect(0, 0, width, height);
  ctx.font = "11px system-ui";
  const put = projection(width, height, turn);
  floor(ctx, field, look, put);
  const along = (count: number) => {
    const drawn = Math.min(MOST, Math.max(FEWEST, count));
    return Array.from({ length: drawn }, (_, i) => (i / (drawn - 1)) * (count - 1));
  };
  const [columns, rows] = [along(field.columns), along(field.rows)];
  const levels = rows.map((row) => columns.map((column) => look.heights.of(lossAt(field, column, row))));
  const spots = rows.map((row, i) => columns.map((column, k) => put(column / (field.columns - 1 || 1), row / (field.rows - 1 || 1), levels[i]![k]!)));
  const pieces: { depth: number; corners: Spot[]; level: number; light: number }[] = [];
  for (let i = 0; i + 1 < rows.length; i++)
    for (let k = 0; k + 1 < columns.length; k++) {
      const [a, b, c, d] = [levels[i]![k]!, levels[i]![k + 1]!, levels[i + 1]![k + 1]!, levels[i + 1]![k]!];
      const level = (a + b + c + d) / 4;
      if (Number.isNaN(level)) continue;
      const corners = [spots[i]![k]!, spots[i]![k + 1]!, spots[i + 1]![k + 1]!, spots[i + 1]![k]!];
      const [dx, dy] = [(b + c - a - d) * columns.length * 0.4, (c + d - a - b) * rows.length * 0.4];
      pieces.push({ depth: corners.reduce((sum, one) => sum + one.depth, 0), corners, level, light: (1 + 0.5 * (dx - dy)) / Math.hypot(1, dx, dy) });
    }
  pieces.sort((one, other) => one.depth - other.depth);
  for (const { corners, level, light } of pieces) {
    ctx.beginPath();
    corners.forEach((one, i) => (i ? ctx.lineTo(one.x, one.y) : ctx.moveTo(one.x, one.y)));
    ctx.closePath();
    ctx.fillStyle = ctx.strokeStyle = shaded(look.palette, level, light);
    ctx.fill();
    ctx.lineWidth = 0.7; // no gaps between neighbours
    ctx.stroke();
  }
  const at = (one: { x: number; y: number; z: number }): [number, number] => {
    const part = (axis: number[], value: number) => (value - axis[0]!) / (axis.at(-1)! - axis[0]! || 1);
    const spot = put(part(field.x, one.x), part(field.y, one.y), look.heights.of(one.z) + 0.01);
    return [spot.x, spot.y];
  };
  drawPath(ctx, field.path.slice(0, look.path).map(at), field.end && at(field.end), look.inks);
  scale(ctx, width - 58, 14, height - 40, look);
}

// The lines of equal loss below the surface.
function floor(ctx: CanvasRenderingContext2D, field: Field, look: Look, put: ReturnType<typeof projection>): void {
  const below = -0.35;
  const corner = (a: number, b: number) => put(a, b, below);
  ctx.strokeStyle = look.inks.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1), corner(0, 0)].forEach((one, i) => (i ? ctx.lineTo(one.x, one.y) : ctx.moveTo(one.x, one.y)));
  ctx.stroke();
  for (const level of look.levels) {
    ctx.beginPath();
    for (const [x0, y0, x1, y1] of isoline(field, level)) {
      const [from, to] = [put(x0! / (field.columns - 1), y0! / (field.rows - 1), below), put(x1! / (field.columns - 1), y1! / (field.rows - 1), below)];
      ctx.moveTo(from.x, from.y);
      ctx.lineTo(to.x, to.y);
    }
    ctx.strokeStyle = css(colourOf(look.palette, look.heights.of(level)));
    ctx.stroke();
  }
}

function shaded(palette: Palette, level: number, light: number): string {
  const bright = Math.min(1.25, Math.max(0.5, 0.55 + 0.5 * light));
  return css(colourOf(palette, level).map((c) => Math.min(255, Math.round(c * bright))) as [number, number, number]);
}

// Points of a path on the canvas, and where the trained weights are.
function drawPath(ctx: CanvasRenderingContext2D, points: [number, number][], end: [number, number] | null, inks: Inks): void {
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

// Which colour is which loss.
function scale(ctx: CanvasRenderingContext2D, x: number, y: number, height: number, look: Look): void {
  for (let i = 0; i < height; i++) {
    ctx.fillStyle = css(colourOf(look.palette, 1 - i / height));
    ctx.fillRect(x, y + i, 10, 1.5);
  }
  ctx.fillStyle = look.inks.quiet;
  ctx.textAlign = "left";
  for (const part of [0, 0.5, 1]) ctx.fillText(short(look.heights.loss(part)), x + 14, y + height * (1 - part) + (part === 1 ? 10 : part ? 4 : 0));
}
