// Places of data, runs and files: columns from what was there first to what came of it.
import type { Artifact, Provenance } from "../api/artifacts";

export interface Box {
  node: Artifact;
  x: number;
  y: number;
}

export interface Placed {
  boxes: Box[]; // in the order of columns, each from top to bottom
  ways: { from: string; to: string; d: string }[];
  width: number;
  height: number;
}

export const BOX = { width: 190, height: 36 };
const GAP = { x: 54, y: 14 };
const SWEEPS = 6;

// How many nodes lead to each at most; those in circles, which only damaged files have, come after the others.
function columnsOf(count: number, edges: [number, number][]): number[] {
  const after: number[][] = Array.from({ length: count }, () => []);
  const waiting = new Array<number>(count).fill(0);
  for (const [from, to] of edges) if (from !== to) after[from]!.push(to), (waiting[to]! += 1);
  const column = new Array<number>(count).fill(0);
  const ready = waiting.flatMap((n, i) => (n ? [] : [i]));
  for (const one of ready)
    for (const next of after[one]!) {
      column[next] = Math.max(column[next]!, column[one]! + 1);
      waiting[next]! -= 1;
      if (!waiting[next]) ready.push(next);
    }
  return column;
}

export function placed({ nodes, edges }: Provenance): Placed {
  const column = columnsOf(nodes.length, edges);
  const neighbours = nodes.map(() => ({ before: [] as number[], after: [] as number[] }));
  for (const [from, to] of edges) neighbours[from]!.after.push(to), neighbours[to]!.before.push(from);
  // Data and parents stand right before the first that was made of them.
  nodes.forEach((_, i) => {
    const next = neighbours[i]!.after.filter((to) => to !== i).map((to) => column[to]!);
    if (neighbours[i]!.before.every((from) => from === i) && next.length) column[i] = Math.max(0, Math.min(...next) - 1);
  });
  const columns: number[][] = Array.from({ length: Math.max(0, ...column) + 1 }, () => []);
  column.forEach((at, i) => columns[at]!.push(i));
  const row = new Array<number>(nodes.length).fill(0);
  const number = () => columns.forEach((list) => list.forEach((one, i) => (row[one] = i - list.length / 2)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2 ? "after" : "before";
    for (const list of columns) {
      const middle = new Map(
        list.map((one) => {
          const near = neighbours[one]![side];
          return [one, near.length ? near.reduce((sum, n) => sum + row[n]!, 0) / near.length : row[one]!];
        }),
      );
      list.sort((a, b) => middle.get(a)! - middle.get(b)!);
    }
    number();
  }
  const most = Math.max(1, ...columns.map((list) => list.length));
  const height = most * (BOX.height + GAP.y) - GAP.y;
  const places = new Map<number, { x: number; y: number }>();
  columns.forEach((list, at) => {
    const top = (height - list.length * (BOX.height + GAP.y) + GAP.y) / 2;
    list.forEach((one, i) => places.set(one, { x: at * (BOX.width + GAP.x), y: top + i * (BOX.height + GAP.y) }));
  });
  const ways = edges.map(([from, to]) => {
    const [a, b] = [places.get(from)!, places.get(to)!];
    const [x0, y0, x1, y1] = [a.x + BOX.width, a.y + BOX.height / 2, b.x, b.y + BOX.height / 2];
    const bend = Math.max(GAP.x / 2, Math.abs(x1 - x0) / 2);
    return { from: nodes[from]!.key, to: nodes[to]!.key, d: `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}` };
  });
  return {
    boxes: columns.flat().map((one) => ({ node: nodes[one]!, ...places.get(one)! })),
    ways,
    width: columns.length * (BOX.width + GAP.x) - GAP.x,
    height,
  };
}

// What leads to a node and what came of it, itself too.
export function related(key: string, ways: Placed["ways"]): Set<string> {
  const found = new Set([key]);
  const walk = (from: "from" | "to", to: "from" | "to") => {
    const next = new Map<string, string[]>();
    for (const way of ways) next.set(way[from], [...(next.get(way[from]) ?? []), way[to]]);
    const seen = new Set([key]);
    for (const one of seen) for (const other of next.get(one) ?? []) seen.add(other), found.add(other);
  };
  walk("from", "to");
  walk("to", "from");
  return found;
}
