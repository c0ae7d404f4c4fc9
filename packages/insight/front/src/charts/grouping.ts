// Runs that belong together since a parameter of theirs has the same value.
import type { Cell } from "../api/lineages";
import { short } from "./curves";

export interface Grouping {
  names: string[]; // in the order of their values
  of: Map<string, string>; // run -> name of its group
}

const MOST = 12; // groups of single numbers; more of them are put into ranges
const RANGES = 6;

const text = (value: Cell): string => (typeof value === "number" ? short(value) : String(value));

// `without` is the group of runs that have no value.
export function groupedBy(rows: [run: string, value: Cell][], without: string): Grouping {
  const named = (value: Cell) => (value === null ? without : text(value));
  const values = [...new Set(rows.map(([, value]) => value))];
  const numbers = values.filter((value): value is number => typeof value === "number").sort((a, b) => a - b);
  const others = values.filter((value) => value !== null && typeof value !== "number").map(text).sort();
  const last = values.includes(null) ? [without] : [];
  if (numbers.length <= MOST) {
    const names = [...new Set([...numbers.map(text), ...others, ...last])];
    return { names, of: new Map(rows.map(([run, value]) => [run, named(value)])) };
  }
  // About equally many different numbers in each range.
  const ranges = Array.from({ length: RANGES }, (_, i) => numbers.slice(Math.floor((i * numbers.length) / RANGES), Math.floor(((i + 1) * numbers.length) / RANGES)));
  const titles = ranges.map((range) => `${short(range[0]!)} … ${short(range.at(-1)!)}`);
  const place = (value: Cell) => (typeof value === "number" ? titles[ranges.findIndex((range) => value <= range.at(-1)!)]! : named(value));
  return { names: [...new Set([...titles, ...others, ...last])], of: new Map(rows.map(([run, value]) => [run, place(value)])) };
}
