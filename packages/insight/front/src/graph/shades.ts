// Colours of nodes by what they give: how many bytes, or of which dtype.
import type { Output } from "../api/graphs";
import { sizeText } from "../parts/size";

export const shadings = ["", "memory", "dtype"] as const;
export type Shading = (typeof shadings)[number];

// Of the palette of Okabe and Ito (2008), which those tell apart who see colours otherwise.
const HUES: Record<string, string> = { float32: "#0072b2", float16: "#d55e00", bfloat16: "#e69f00", float64: "#56b4e9", bool: "#cc79a7" };
const hue = (dtype: string) => HUES[dtype] ?? (/^u?int/.test(dtype) ? "#009e73" : dtype ? "#7a7a7a" : "");

export interface Shade {
  fill: string; // "" of what is not known
  says: string;
}

export interface Scale {
  shades: Map<number, Shade>;
  least?: number; // bytes
  most?: number;
  dtypes: { name: string; fill: string; count: number }[];
}

const mixed = (colour: string, percent: number) => `color-mix(in srgb, ${colour} ${percent.toFixed(1)}%, var(--surface))`;
export const heat = (level: number) => mixed("var(--graph-heat)", 8 + 77 * level);
const dtypeFill = (dtype: string) => mixed(hue(dtype), 50);

// leaf: ids of nodes that are not open; only these are compared, an open scope holds what they are.
export function scaleOf(shading: Shading, outputs: Record<string, Output>, leaf: (id: number) => boolean, unknown: string): Scale {
  const shades = new Map<number, Shade>();
  const shown = Object.entries(outputs).map(([id, one]) => [Number(id), one] as const).filter(([id]) => leaf(id));
  const counts = new Map<string, number>();
  if (shading === "dtype") {
    for (const [id, one] of shown) {
      const names = Object.keys(one.dtypes);
      for (const name of names) counts.set(name, (counts.get(name) ?? 0) + one.dtypes[name]!);
      shades.set(id, { fill: names.length ? dtypeFill(names[0]!) : "", says: names.map((name) => (names.length > 1 ? `${name} × ${one.dtypes[name]}` : name)).join(", ") || unknown });
    }
    const dtypes = [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => ({ name, count, fill: dtypeFill(name) }));
    return { shades, dtypes };
  }
  const sizes = shown.flatMap(([, one]) => (one.bytes ? [one.bytes] : []));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  for (const [id, one] of shown) {
    const level = !one.bytes ? 0 : most > least ? Math.log(one.bytes / least) / Math.log(most / least) : 1;
    shades.set(id, one.bytes === null ? { fill: "", says: unknown } : { fill: heat(level), says: sizeText(one.bytes) });
  }
  return { shades, dtypes: [], ...(sizes.length ? { least, most } : {}) };
}
