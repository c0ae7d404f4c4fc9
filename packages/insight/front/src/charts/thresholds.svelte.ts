// Thresholds of a run's tags: one or two conditions; values that meet them are drawn red. The browser keeps them.
import { keep, kept } from "../settings.svelte";

export interface Condition {
  sign: ">" | "<";
  value: number;
}

export interface Threshold {
  conditions: Condition[]; // one or two
  joined: "and" | "or";
}

export type Refusal = "number" | "duplicate" | "never" | "always";

const meets = (value: number, { sign, value: limit }: Condition) => (sign === ">" ? value > limit : value < limit);
export const alarms = (threshold: Threshold) => (value: number) => (threshold.joined === "and" ? threshold.conditions.every((one) => meets(value, one)) : threshold.conditions.some((one) => meets(value, one)));
export const written = ({ conditions, joined }: Threshold, words: { and: string; or: string }) => conditions.map((one) => `${one.sign} ${one.value}`).join(` ${words[joined]} `);

// Why a threshold cannot be: a value is no number, two conditions of which one says all, no value or every value meets it.
export function refusal({ conditions, joined }: Threshold): Refusal | undefined {
  if (!conditions.length || conditions.some((one) => !Number.isFinite(one.value))) return "number";
  const [first, second] = conditions;
  if (!first || !second) return undefined;
  if (first.sign === second.sign) return "duplicate";
  const [above, below] = first.sign === ">" ? [first.value, second.value] : [second.value, first.value];
  if (joined === "and") return above >= below ? "never" : undefined;
  return above < below ? "always" : undefined;
}

export const same = (a: Threshold, b: Threshold) => written(a, { and: "&", or: "|" }) === written(b, { and: "&", or: "|" });

type Table = Record<string, Record<string, Threshold>>; // by run, then by tag

const isCondition = (one: unknown): one is Condition => one instanceof Object && ["<", ">"].includes((one as Condition).sign) && Number.isFinite((one as Condition).value);
const isThreshold = (one: unknown): one is Threshold => {
  if (!(one instanceof Object)) return false;
  const { conditions, joined } = one as Threshold;
  return ["and", "or"].includes(joined) && Array.isArray(conditions) && conditions.every(isCondition) && refusal(one as Threshold) === undefined;
};

function read(): Table {
  const found: Table = Object.create(null);
  try {
    for (const [run, tags] of Object.entries(JSON.parse(kept("thresholds") ?? "{}") as object))
      for (const [tag, one] of Object.entries(tags as object)) if (isThreshold(one)) (found[run] ??= Object.create(null) as Table[string])[tag] = one;
  } catch {
    return found; // someone else's hand
  }
  return found;
}

class Thresholds {
  private table = $state.raw<Table>(read());

  of(run: string, tag: string): Threshold | undefined {
    return this.table[run]?.[tag];
  }

  // Sets the threshold of tags of a run, or takes it away.
  set(run: string, tags: string[], threshold: Threshold | undefined): void {
    const table = read(); // another window may have changed it
    const own = (table[run] ??= Object.create(null) as Table[string]);
    for (const tag of tags) {
      if (threshold) own[tag] = threshold;
      else delete own[tag];
    }
    if (!Object.keys(own).length) delete table[run];
    keep("thresholds", JSON.stringify(table));
    this.table = table;
  }
}

export const thresholds = new Thresholds();
