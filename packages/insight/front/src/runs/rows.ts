// Rows of the list of runs in the order of a column; what is missing comes last.
import type { Value } from "../api/http";
import type { RunRow } from "../api/runs";

export const columns = ["run", "status", "updated", "step", "loss", "best", "labels"] as const;
export type Column = (typeof columns)[number];

const order = ["running", "stalled", "failed", "finished", "unknown"];
const place = (value: Value | null | undefined): number | null => (typeof value === "number" ? value : value === "Infinity" ? Infinity : value === "-Infinity" ? -Infinity : null);

function keyOf(row: RunRow, column: Column): number | string | null {
  if (column === "run") return row.run;
  if (column === "status") return order.indexOf(row.status);
  if (column === "updated") return row.updated;
  if (column === "step") return row.step;
  if (column === "loss") return place(row.loss);
  if (column === "best") return place(row.best?.value);
  return row.labels.join(", ") || null;
}

export function sorted(rows: RunRow[], by: string): RunRow[] {
  const sign = by.startsWith("-") ? -1 : 1;
  const column = columns.find((one) => one === by.replace("-", "")) ?? "updated";
  return rows
    .map((row) => ({ row, key: keyOf(row, column) }))
    .sort((a, b) => {
      if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
      return sign * (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
    })
    .map(({ row }) => row);
}
