// Curves of a group as one: their mean, and a band from the least to the greatest.
import type { Curve } from "./curves";

interface Group {
  name: string;
  colour: string;
  curves: Curve[];
}

// Places where curves are joined: where they have points if those are few, else the middles of equal parts.
function grid(curves: Curve[], columns: number): { at: number[]; half: number } {
  const places = [...new Set(curves.flatMap((curve) => [...curve.x].filter(Number.isFinite)))].sort((a, b) => a - b);
  if (places.length <= 2 * columns) return { at: places, half: 0 };
  const [low, high] = [places[0]!, places.at(-1)!];
  const half = (high - low) / columns / 2;
  return { at: Array.from({ length: columns }, (_, i) => low + (2 * i + 1) * half), half };
}

// The value of a line at rising places, between its finite points; NaN outside of it.
function valuesAt(curve: Curve, at: number[], half: number): { mean: number; low: number; high: number }[] {
  const points = [...curve.x.keys()].filter((i) => Number.isFinite(curve.x[i]!) && Number.isFinite(curve.y[i]!)).sort((a, b) => curve.x[a]! - curve.x[b]!);
  let next = 0; // the first point behind the place
  let first = 0; // the first point within the part
  return at.map((place) => {
    while (next < points.length && curve.x[points[next]!]! <= place) next += 1;
    const [before, after] = [points[next - 1], points[next]];
    let mean = NaN;
    if (before !== undefined && (curve.x[before] === place || after === undefined)) mean = curve.x[before]! + half >= place ? curve.y[before]! : NaN;
    else if (before === undefined) mean = after !== undefined && curve.x[after]! - half <= place ? curve.y[after]! : NaN;
    else mean = curve.y[before]! + ((curve.y[after!]! - curve.y[before]!) * (place - curve.x[before]!)) / (curve.x[after!]! - curve.x[before]!);
    let [low, high] = [mean, mean];
    while (first < points.length && curve.x[points[first]!]! < place - half) first += 1;
    for (let i = first; i < points.length && curve.x[points[i]!]! <= place + half; ++i) {
      const value = curve.y[points[i]!]!;
      low = value < low || Number.isNaN(low) ? value : low;
      high = value > high || Number.isNaN(high) ? value : high;
    }
    return { mean, low, high };
  });
}

// `columns`: of the drawing. The mean is over those curves that reach a place.
export function banded(groups: Group[], columns: number): Curve[] {
  return groups.flatMap(({ name, colour, curves }) => {
    const { at, half } = grid(curves, columns);
    if (!at.length) return [];
    const mean = new Float64Array(at.length).fill(NaN);
    const low = mean.slice();
    const high = mean.slice();
    const lines = curves.map((curve) => valuesAt(curve, at, half));
    at.forEach((_, i) => {
      let [sum, count] = [0, 0];
      for (const line of lines) {
        const one = line[i]!;
        if (Number.isFinite(one.mean)) (sum += one.mean), (count += 1);
        if (Number.isFinite(one.low) && !(one.low >= low[i]!)) low[i] = one.low;
        if (Number.isFinite(one.high) && !(one.high <= high[i]!)) high[i] = one.high;
      }
      if (count) mean[i] = sum / count;
    });
    return [{ key: name, name: `${name} (${curves.length})`, colour, side: "left" as const, x: Float64Array.from(at), y: mean, band: { low, high }, odd: curves.flatMap((curve) => curve.odd) }];
  });
}
