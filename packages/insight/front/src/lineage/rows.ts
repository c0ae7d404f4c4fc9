// Rows of the table of lineage: the operators of pipelines as columns, choices on axes, order.
import type { Cell, Column, LineageRow, LineageTable, Pipeline } from "../api/lineages";
import type { Axis } from "./parallel";

export type Brushes = Record<string, [number, number]>;
export type Told = { columns: Column[]; rows: LineageRow[] };

export const groupOf = (name: string) => (name.startsWith("metric/") ? "metric" : name.startsWith("user_defined/") ? "user" : "field");
export const labelOf = (name: string) => name.replace(/^metric\//, "[M]").replace(/^user_defined\//, "[U]");

// Of a pipeline the operators from its source on, each with its parameters.
function operators(node: Pipeline): { name: string; text: string }[] {
  const { children = [], op_type, ...parameters } = node;
  const told = Object.entries(parameters).map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`);
  const before = children.flatMap(operators);
  return op_type ? [...before, { name: op_type, text: told.join("\n") }] : before;
}

// Rows with pipelines; their columns are the operators, the second of a kind named so, and what was reached.
export function ofPipelines(table: LineageTable): Told {
  const columns = new Map<string, Column>();
  const values = table.datasets.map(operators).map((list) => {
    const found = new Map<string, Cell>();
    for (const one of list) {
      let [name, n] = [one.name, 1];
      while (found.has(name)) name = `${one.name} ${(n += 1)}`;
      found.set(name, one.text || "–");
      columns.set(name, { name, type: "text" });
    }
    return Object.fromEntries(found);
  });
  const reached = table.columns.filter((c) => groupOf(c.name) === "metric" || c.name === "loss");
  const rows = table.rows.filter((row) => row.dataset !== null);
  return { columns: [...columns.values(), ...reached], rows: rows.map((row) => ({ ...row, values: { ...row.values, ...values[row.dataset!] } })) };
}

export function chosenBy(rows: LineageRow[], axes: Axis[], brushes: Brushes): LineageRow[] {
  const wanted = axes.filter((axis) => brushes[axis.name]);
  return rows.filter((row) =>
    wanted.every((axis) => {
      const [low, high] = brushes[axis.name]!;
      const value = axis.kind === "number" ? row.values[axis.name] : axis.place(row.values[axis.name]);
      return typeof value === "number" && value >= low && value <= high;
    }),
  );
}

// By a column, `-` in front turns the order round; what is missing comes last.
export function sorted(rows: LineageRow[], order: string): LineageRow[] {
  if (!order) return rows;
  const [sign, name] = order.startsWith("-") ? [-1, order.slice(1)] : [1, order];
  const value = (row: LineageRow) => (name === "run" ? row.run : name === "tag" ? row.tag : row.values[name]);
  const rank = (v: Cell | undefined) => (v === null || v === undefined ? 2 : typeof v === "number" ? 0 : 1);
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (rank(x) !== rank(y) || rank(x) === 2) return rank(x) - rank(y);
    return sign * (x! < y! ? -1 : x! > y! ? 1 : 0);
  });
}
