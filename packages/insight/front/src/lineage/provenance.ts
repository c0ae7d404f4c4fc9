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
const LANE = 10; // height of an edge where it passes through a column
const MOST_LANES = 5000;
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
  // An edge that skips columns has a place of its own in each of them, so that it passes between boxes.
  const lanes = edges.map((): number[] => []);
  let count = nodes.length;
  edges.forEach(([from, to], at) => {
    if (count + column[to]! - column[from]! > nodes.length + MOST_LANES) return;
    for (let c = column[from]! + 1; c < column[to]!; c++) {
      lanes[at]!.push(count++);
      column.push(c);
    }
  });
  neighbours.length = 0;
  for (let i = 0; i < count; i++) neighbours.push({ before: [], after: [] });
  edges.forEach(([from, to], at) => {
    const way = [from, ...lanes[at]!, to];
    for (let i = 1; i < way.length; i++) neighbours[way[i - 1]!]!.after.push(way[i]!), neighbours[way[i]!]!.before.push(way[i - 1]!);
  });
  const heightOf = (one: number) => (one < nodes.length ? BOX.height : LANE);
  const columns: number[][] = Array.from({ length: Math.max(0, ...column) + 1 }, () => []);
  column.forEach((at, i) => columns[at]!.push(i));
  // Middles of boxes and lanes, columns about a common axis.
  const middle = new Array<number>(count).fill(0);
  const tall = (list: number[]) => list.reduce((sum, one) => sum + heightOf(one) + GAP.y, -GAP.y);
  const stack = () =>
    columns.forEach((list) => {
      let top = -tall(list) / 2;
      for (const one of list) (middle[one] = top + heightOf(one) / 2), (top += heightOf(one) + GAP.y);
    });
  stack();
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2 ? "after" : "before";
    for (const list of columns) {
      const wanted = new Map(
        list.map((one) => {
          const near = neighbours[one]![side];
          return [one, near.length ? near.reduce((sum, n) => sum + middle[n]!, 0) / near.length : middle[one]!];
        }),
      );
      list.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
    }
    stack();
  }
  const height = Math.max(BOX.height, ...columns.map(tall));
  const left = (one: number) => column[one]! * (BOX.width + GAP.x);
  const y = (one: number) => height / 2 + middle[one]!;
  const ways = edges.map(([from, to], at) => {
    let [x, d] = [left(from) + BOX.width, `M${left(from) + BOX.width} ${y(from)}`];
    let last = from;
    for (const one of [...lanes[at]!, to]) {
      const bend = Math.max(GAP.x / 2, Math.abs(left(one) - x) / 2);
      d += `C${x + bend} ${y(last)} ${left(one) - bend} ${y(one)} ${left(one)} ${y(one)}`;
      if (one !== to) d += `H${left(one) + BOX.width}`;
      [x, last] = [left(one) + BOX.width, one];
    }
    return { from: nodes[from]!.key, to: nodes[to]!.key, d };
  });
  return {
    boxes: columns.flat().flatMap((one) => (one < nodes.length ? [{ node: nodes[one]!, x: left(one), y: y(one) - BOX.height / 2 }] : [])),
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
