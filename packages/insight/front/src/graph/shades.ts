// Colours of nodes: by what they give, how many bytes or of which dtype, by what they cost, and by what was not finite.
import type { Measure, Measures, Output } from "../api/graphs";
import { durationText } from "../parts/duration";
import { sizeText } from "../parts/size";

export const shadings = ["", "memory", "dtype", "time", "nan"] as const;
export type Shading = (typeof shadings)[number];

// Of the palette of Okabe and Ito (2008), which those tell apart who see colours otherwise.
const HUES: Record<string, string> = { float32: "#0072b2", float16: "#d55e00", bfloat16: "#e69f00", float64: "#56b4e9", bool: "#cc79a7" };
const hue = (dtype: string) => HUES[dtype] ?? (/^u?int/.test(dtype) ? "#009e73" : dtype ? "#7a7a7a" : "");
const FAULTS = { first: ["#cc79a7", 60], nan: ["#d55e00", 60], inf: ["#e69f00", 50], finite: ["#009e73", 14] } as const;
export type Fault = keyof typeof FAULTS;
export const faults = Object.keys(FAULTS) as Fault[];

export interface Shade {
  fill: string; // "" of what is not known
  says: string;
}

export interface Scale {
  shades: Map<number, Shade>;
  range?: [string, string]; // the least and the most
  groups: { name: string; fill: string; count: number }[];
}

export interface Words {
  unknown: string;
  fused: (n: number, owner: string) => string;
  share: (percent: string) => string;
  fault: (one: NonNullable<Measure["nonfinite"]>, isDumped: boolean) => string;
  finite: string;
}

const mixed = (colour: string, percent: number) => `color-mix(in srgb, ${colour} ${percent.toFixed(1)}%, var(--surface))`;
export const heat = (level: number) => mixed("var(--graph-heat)", 8 + 77 * level);
const dtypeFill = (dtype: string) => mixed(hue(dtype), 50);
export const faultFill = (fault: Fault) => mixed(FAULTS[fault][0], FAULTS[fault][1]);

// Only nodes that are not open are compared: an open scope holds what they are. leaf: whether an id is one of these.
const shown = <One>(all: Record<string, One>, leaf: (id: number) => boolean) => Object.entries(all).map(([id, one]) => [Number(id), one] as const).filter(([id]) => leaf(id));

export function scaleOf(shading: "memory" | "dtype", outputs: Record<string, Output>, leaf: (id: number) => boolean, unknown: string): Scale {
  const shades = new Map<number, Shade>();
  const counts = new Map<string, number>();
  if (shading === "dtype") {
    for (const [id, one] of shown(outputs, leaf)) {
      const names = Object.keys(one.dtypes);
      for (const name of names) counts.set(name, (counts.get(name) ?? 0) + one.dtypes[name]!);
      shades.set(id, { fill: names.length ? dtypeFill(names[0]!) : "", says: names.map((name) => (names.length > 1 ? `${name} × ${one.dtypes[name]}` : name)).join(", ") || unknown });
    }
    return { shades, groups: [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => ({ name, count, fill: dtypeFill(name) })) };
  }
  const sizes = shown(outputs, leaf).flatMap(([, one]) => (one.bytes ? [one.bytes] : []));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  for (const [id, one] of shown(outputs, leaf)) {
    const level = !one.bytes ? 0 : most > least ? Math.log(one.bytes / least) / Math.log(most / least) : 1;
    shades.set(id, one.bytes === null ? { fill: "", says: unknown } : { fill: heat(level), says: sizeText(one.bytes) });
  }
  return { shades, groups: [], ...(sizes.length ? { range: [sizeText(least), sizeText(most)] } : {}) };
}

// By share of the most expensive node that is shown.
export function timeScale(measures: Measures, whole: number, leaf: (id: number) => boolean, words: Words): Scale {
  const shades = new Map<number, Shade>();
  const rows = shown(measures.nodes, leaf);
  const times = rows.flatMap(([, one]) => (one.nanoseconds === null ? [] : [one.nanoseconds]));
  const most = Math.max(...times);
  for (const [id, one] of rows) {
    const percent = whole ? `${Number(((100 * (one.nanoseconds ?? 0)) / whole).toPrecision(2))} %` : "";
    if (one.nanoseconds !== null) shades.set(id, { fill: heat(most ? one.nanoseconds / most : 0), says: `${durationText(one.nanoseconds)}${percent ? `, ${words.share(percent)}` : ""}${one.fused ? `, ${words.fused(one.fused, "")}` : ""}` });
    else shades.set(id, { fill: "", says: one.fused ? words.fused(one.fused, one.in) : words.unknown });
  }
  return { shades, groups: [], ...(times.length ? { range: [durationText(Math.min(...times)), durationText(most)] } : {}) };
}

export function faultOf(one: Measure): Fault {
  const found = one.nonfinite;
  return !found ? "finite" : found.first ? "first" : found.nan ? "nan" : "inf";
}

export function faultScale(measures: Measures, leaf: (id: number) => boolean, words: Words): Scale {
  const shades = new Map<number, Shade>();
  const counts = new Map<Fault, number>();
  for (const [id, one] of measures.faults ? shown(measures.nodes, leaf) : []) {
    const fault = faultOf(one);
    counts.set(fault, (counts.get(fault) ?? 0) + 1);
    shades.set(id, { fill: faultFill(fault), says: one.nonfinite ? words.fault(one.nonfinite, measures.faults?.dump !== null) : words.finite });
  }
  return { shades, groups: faults.filter((one) => counts.has(one)).map((one) => ({ name: one, fill: faultFill(one), count: counts.get(one)! })) };
}
