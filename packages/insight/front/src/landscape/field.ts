// A landscape as numbers to draw: heights on a grid, lines of equal height.
import type { Value } from "../api/http";
import type { Landscape } from "../api/landscapes";
import type { Inks } from "../charts/inks";
import type { Palette } from "./colours";

export interface Field {
  x: number[];
  y: number[];
  z: Float64Array; // row after row; NaN where there is no finite loss
  columns: number;
  rows: number;
  low: number; // of the finite losses
  high: number;
  path: { x: number; y: number; z: number; step: number }[];
  end: { x: number; y: number; z: number } | null;
}

export interface Heights {
  of: (loss: number) => number; // 0 for the lowest loss to 1 for the greatest
  loss: (height: number) => number;
}

export interface Look {
  palette: Palette;
  heights: Heights;
  levels: number[];
  path: number; // points of the path that are drawn
  inks: Inks;
}

const finite = (value: Value): number => (typeof value === "number" ? value : NaN);

export function fieldOf(data: Landscape): Field {
  const [columns, rows] = [data.x.length, data.y.length];
  const z = new Float64Array(columns * rows);
  let [low, high] = [Infinity, -Infinity];
  data.z.forEach((row, i) =>
    row.forEach((value, k) => {
      const loss = finite(value);
      z[i * columns + k] = loss;
      if (loss < low) low = loss;
      if (loss > high) high = loss;
    }),
  );
  const path = data.path ? data.steps.map((step, i) => ({ step, x: finite(data.path!.x[i]!), y: finite(data.path!.y[i]!), z: finite(data.path!.z[i]!) })) : [];
  const [ex, ey, ez] = (data.end ?? [NaN, NaN, NaN]).map(finite) as [number, number, number];
  return { x: data.x.map(finite), y: data.y.map(finite), z, columns, rows, low, high, path, end: Number.isFinite(ex) && Number.isFinite(ey) ? { x: ex, y: ey, z: ez } : null };
}

// Logarithmic heights are those of the distance from the lowest loss, so that the floor of a valley has lines too.
export function heightsOf(low: number, high: number, logarithmic: boolean): Heights {
  const span = high - low || 1;
  if (!logarithmic) return { of: (loss) => (loss - low) / span, loss: (height) => low + height * span };
  const least = span / 1000;
  const whole = Math.log1p(span / least);
  return { of: (loss) => Math.log1p(Math.max(0, loss - low) / least) / whole, loss: (height) => low + Math.expm1(height * whole) * least };
}

// Losses of `count` lines between the lowest and the greatest.
export const levelsOf = (heights: Heights, count: number): number[] => Array.from({ length: count }, (_, i) => heights.loss((i + 0.5) / count));

// Where the loss is `level`: pieces [x0, y0, x1, y1] in columns and rows, by marching squares.
export function isoline(field: Field, level: number): number[][] {
  const { z, columns, rows } = field;
  const found: number[][] = [];
  for (let i = 0; i + 1 < rows; i++)
    for (let k = 0; k + 1 < columns; k++) {
      const at = i * columns + k;
      const corners = [z[at]!, z[at + 1]!, z[at + columns + 1]!, z[at + columns]!] as const;
      let kind = 0;
      corners.forEach((corner, bit) => (kind |= corner > level ? 1 << bit : 0));
      if (kind === 0 || kind === 15 || corners.some(Number.isNaN)) continue;
      const between = (a: number, b: number) => (level - corners[a]!) / (corners[b]! - corners[a]!);
      const sides = [
        () => [k + between(0, 1), i],
        () => [k + 1, i + between(1, 2)],
        () => [k + between(3, 2), i + 1],
        () => [k, i + between(0, 3)],
      ] as const;
      const cut = [0, 1, 2, 3].filter((side) => ((kind >> side) & 1) !== ((kind >> ((side + 1) & 3)) & 1));
      // A saddle is cut by two lines: the mean tells which corners belong together.
      const pairs = cut.length === 2 ? [cut] : (corners.reduce((a, b) => a + b) / 4 > level) === Boolean(kind & 1) ? [[0, 1], [2, 3]] : [[3, 0], [1, 2]];
      for (const [a, b] of pairs) found.push([...sides[a!]!(), ...sides[b!]!()]);
    }
  return found;
}

// The loss between the places of the grid; NaN beside it, and beside what is not finite.
export function lossAt(field: Field, column: number, row: number): number {
  const k = Math.min(field.columns - 2, Math.floor(column));
  const i = Math.min(field.rows - 2, Math.floor(row));
  if (column < 0 || row < 0 || column > field.columns - 1 || row > field.rows - 1) return NaN;
  if (k < 0 || i < 0) return field.z[Math.round(row) * field.columns + Math.round(column)]!;
  const [u, v] = [column - k, row - i];
  const at = i * field.columns + k;
  const [a, b, c, d] = [field.z[at]!, field.z[at + 1]!, field.z[at + field.columns]!, field.z[at + field.columns + 1]!];
  return (a * (1 - u) + b * u) * (1 - v) + (c * (1 - u) + d * u) * v;
}
