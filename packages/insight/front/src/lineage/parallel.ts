// Axes of parallel coordinates: where a value lies, from 0 at the bottom to 1 at the top.
import type { Cell } from "../api/lineages";

export interface Axis {
  name: string;
  kind: "number" | "text" | "mixed";
  log: boolean;
  canLog: boolean;
  ticks: { at: number; text: string }[];
  place: (value: Cell | undefined) => number | null;
  value: (at: number) => number;
}

const short = (value: number) => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential(1) : String(Number(value.toPrecision(4))));

export function axisOf(name: string, kind: Axis["kind"], values: (Cell | undefined)[], wantsLog: boolean): Axis {
  if (kind !== "number") {
    const known = [...new Set(values.filter((v) => v !== null && v !== undefined).map(String))].sort();
    const at = (i: number) => (known.length > 1 ? i / (known.length - 1) : 0.5);
    const places = new Map(known.map((text, i) => [text, at(i)]));
    const every = Math.ceil(known.length / 12);
    return {
      name,
      kind,
      log: false,
      canLog: false,
      ticks: known.map((text, i) => ({ at: at(i), text })).filter((_, i) => i % every === 0),
      place: (value) => (value === null || value === undefined ? null : (places.get(String(value)) ?? null)),
      value: (place) => place,
    };
  }
  const finite = values.filter((v): v is number => typeof v === "number");
  const canLog = finite.length > 0 && finite.every((v) => v > 0);
  const log = wantsLog && canLog;
  const scaled = finite.map((v) => (log ? Math.log10(v) : v));
  let low = Math.min(...scaled);
  let high = Math.max(...scaled);
  const around = Math.max(0.5, 1e-9 * Math.abs(low)); // which large numbers are not too coarse for
  if (!(low < high)) [low, high] = finite.length ? [low - around, high + around] : [0, 1];
  const value = (place: number) => (log ? 10 ** (low + place * (high - low)) : low + place * (high - low));
  return {
    name,
    kind,
    log,
    canLog,
    ticks: [0, 0.25, 0.5, 0.75, 1].map((at) => ({ at, text: short(value(at)) })),
    place: (v) => (typeof v === "number" ? ((log ? Math.log10(v) : v) - low) / (high - low) : null),
    value,
  };
}
