// Places of nodes and ways of edges, computed by ELK in a worker.
import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import worker from "elkjs/lib/elk-worker.min.js?url";
import { bundled, type Bundle } from "./bundles";
import { labelOf } from "./difference";
import { typeText, type GraphEdge, type GraphNode, type View } from "../api/graphs";

export interface Box {
  node: GraphNode;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Way {
  edges: GraphEdge[]; // one, or those of a bundle that pass here
  ends: number[]; // of nodes: what is shown when one of them is chosen
  bundle: number; // edges of the bundle, where it is one line between two scopes; else 0
  arrives: boolean; // whether it ends at a node
  d: string; // a path of SVG
  label: string; // drawn, if there is room
  tip: string;
  x: number; // of the label's middle
  y: number;
}

export interface Drawing {
  boxes: Box[]; // what is open before what it holds
  ways: Way[];
  isLabelled: boolean; // whether edges have room for their labels
  width: number;
  height: number;
}

const LONGEST = 34; // characters of a label
const LONGEST_LABEL = 36; // characters; the tip has all of it
export const brief = (text: string) => (text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text);
const MOST_LABELS = 250; // edges, with more of them their labels are left to the tip
const MANY = 20; // nodes of a scope
const LONGEST_SIDE = 3; // times the other one, and
const LONG = 2400; // units; what is longer is broken into columns or rows
const LAYER = 70; // units from one node to the next
const FAN = 40; // edges of a node; with more of them those of each node leave it as one, without labels
const LOOSE = 6; // nodes without edges; more of them become a grid
const GAP = 18; // between nodes of a grid
const elk = new ELK({ workerFactory: () => new Worker(worker) });

export const short = (text: string) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

// What stands in a node.
export function written(node: GraphNode): string {
  const whole = labelOf(node);
  return whole === node.label ? short(whole) : whole.replace(node.label, short(node.label));
}

function sized(node: GraphNode): { width: number; height: number } {
  const letters = [...written(node)].reduce((sum, one) => sum + (one.charCodeAt(0) > 0x2e80 ? 2 : 1), 0);
  if (node.kind === "constant") return { width: Math.max(16, letters * 5.6), height: 26 };
  return { width: Math.max(56, letters * 7 + 26), height: node.kind === "scope" || node.kind === "part" ? 36 : 30 };
}

// Nodes without edges, in rows that together are about as high as wide.
interface Grid {
  id: string;
  boxes: Box[]; // from the corner of the grid
  width: number;
  height: number;
}

function gridOf(id: string, nodes: GraphNode[]): Grid {
  const sizes = nodes.map(sized);
  const column = Math.max(...sizes.map((one) => one.width)) + GAP;
  const row = Math.max(...sizes.map((one) => one.height)) + GAP;
  const columns = Math.max(1, Math.min(nodes.length, Math.round(Math.sqrt((nodes.length * row * 1.6) / column))));
  const boxes = nodes.map((node, i) => ({ node, x: (i % columns) * column, y: Math.floor(i / columns) * row, ...sizes[i]! }));
  return { id, boxes, width: columns * column - GAP, height: Math.ceil(nodes.length / columns) * row - GAP };
}

// Of a scope of n nodes.
const AS_COLUMNS = () => ({ "elk.layered.wrapping.strategy": "MULTI_EDGE", "elk.aspectRatio": "1.5" });
const AS_ROWS = (n: number) => ({ "elk.layered.layering.strategy": "COFFMAN_GRAHAM", "elk.layered.layering.coffmanGraham.layerBound": String(Math.ceil(Math.sqrt(n))) });

// How many nodes follow one another at most; those in circles are passed over.
function depthOf(view: View): number {
  const [after, waiting, depth] = [new Map<number, number[]>(), new Map<number, number>(), new Map<number, number>()];
  for (const { from, to } of view.edges) after.set(from, [...(after.get(from) ?? []), to]), waiting.set(to, (waiting.get(to) ?? 0) + 1);
  const ready = view.nodes.map((node) => node.id).filter((id) => !waiting.has(id));
  for (const id of ready)
    for (const next of after.get(id) ?? []) {
      depth.set(next, Math.max(depth.get(next) ?? 1, (depth.get(id) ?? 1) + 1));
      waiting.set(next, waiting.get(next)! - 1);
      if (!waiting.get(next)) ready.push(next);
    }
  return Math.max(1, ...depth.values());
}

// A line from end to end; an end is a node, or where a bundle passes the edge of an open scope.
type LineEnd = number | { scope: number; port: string };
interface Line extends Pick<Way, "edges" | "ends" | "bundle" | "label" | "tip"> {
  from: LineEnd;
  to: LineEnd;
}

const nameOf = (end: LineEnd) => (typeof end === "number" ? String(end) : end.port);

function linesOf(view: View, tensors: (n: number) => string): Line[] {
  const told = (edges: GraphEdge[]) => {
    const count = edges.reduce((sum, edge) => sum + edge.count, 0);
    return edges[0]!.control ? "" : count > 1 ? tensors(count) : typeText(edges[0]!);
  };
  const { bundles, single } = bundled(view);
  const lines: Line[] = single.map((edge) => ({ from: edge.from, to: edge.to, edges: [edge], ends: [edge.from, edge.to], bundle: 0, label: told([edge]), tip: told([edge]) }));
  const endsOf = (edges: GraphEdge[]) => [...new Set(edges.flatMap((edge) => [edge.from, edge.to]))];
  // What leads from single nodes to the bundle, or from it to them.
  const branches = (edges: GraphEdge[], side: "from" | "to", port: LineEnd) => {
    for (const id of new Set(edges.map((edge) => edge[side]))) {
      const its = edges.filter((edge) => edge[side] === id);
      lines.push({ from: side === "from" ? id : port, to: side === "from" ? port : id, edges: its, ends: endsOf(its), bundle: 0, label: "", tip: told(its) });
    }
  };
  bundles.forEach(({ from, to, edges }: Bundle, i) => {
    const isOpen = (scope: number, side: "from" | "to") => edges.some((edge) => edge[side] !== scope);
    const left: LineEnd = isOpen(from, "from") ? { scope: from, port: `b${i}from` } : from;
    const right: LineEnd = isOpen(to, "to") ? { scope: to, port: `b${i}to` } : to;
    if (typeof left !== "number") branches(edges, "from", left);
    lines.push({ from: left, to: right, edges, ends: [from, to, ...endsOf(edges)], bundle: edges.length, label: told(edges), tip: told(edges) });
    if (typeof right !== "number") branches(edges, "to", right);
  });
  return lines;
}

export async function arrange(view: View, tensors: (n: number) => string): Promise<Drawing> {
  const depth = depthOf(view);
  if (depth * LAYER > LONG && depth * 2 > view.nodes.length) {
    // Nearly all follow one another: a first layout would only tell that.
    const drawing = await arranged(view, tensors, AS_COLUMNS).catch(() => undefined);
    if (drawing) return drawing;
  }
  const drawing = await arranged(view, tensors, () => ({}));
  const { width, height } = drawing;
  if (height > LONG && height > LONGEST_SIDE * width) return arranged(view, tensors, AS_COLUMNS).catch(() => drawing);
  if (width > LONG && width > LONGEST_SIDE * height) return arranged(view, tensors, AS_ROWS).catch(() => drawing);
  return drawing;
}

async function arranged(view: View, tensors: (n: number) => string, broken: (n: number) => Record<string, string>): Promise<Drawing> {
  const children = new Map<number, GraphNode[]>();
  for (const node of view.nodes) children.set(node.parent, [...(children.get(node.parent) ?? []), node]);
  const lines = linesOf(view, tensors);
  const degrees = new Map<number, number>();
  for (const end of lines.flatMap((line) => [line.from, line.to])) if (typeof end === "number") degrees.set(end, (degrees.get(end) ?? 0) + 1);
  const fan = Math.max(0, ...degrees.values());
  const grids = new Map<string, Grid>();
  const inside = (parent: number): ElkNode[] => {
    const all = children.get(parent) ?? [];
    const loose = all.filter((node) => !node.open && !degrees.has(node.id));
    if (loose.length <= LOOSE) return all.map(made);
    const grid = gridOf(`grid${parent}`, loose);
    grids.set(grid.id, grid);
    const place = { id: grid.id, width: grid.width, height: grid.height, layoutOptions: { "elk.layered.layering.layerConstraint": "LAST" } };
    return [...all.filter((node) => !loose.includes(node)).map(made), place];
  };
  const options = (parent: number) => {
    const count = children.get(parent)?.length ?? 0;
    return { ...(count >= MANY ? broken(count) : {}), ...(fan > FAN ? { "elk.layered.mergeEdges": "true" } : {}) };
  };
  const isLabelled = view.edges.length <= MOST_LABELS && fan <= FAN;
  const ports = new Map<number, { id: string }[]>(); // where bundles pass the edges of scopes
  for (const end of lines.flatMap((line) => [line.from, line.to]))
    if (typeof end !== "number") ports.set(end.scope, [...(ports.get(end.scope) ?? []).filter((port) => port.id !== end.port), { id: end.port }]);
  const made = (node: GraphNode): ElkNode =>
    node.open
      ? { id: String(node.id), children: inside(node.id), ports: ports.get(node.id) ?? [], layoutOptions: { ...options(node.id), "elk.padding": "[top=34,left=14,bottom=14,right=14]", "elk.nodeSize.constraints": "MINIMUM_SIZE", "elk.nodeSize.minimum": `(${sized(node).width},50)` } }
      : { id: String(node.id), ...sized(node) };
  const asked: ElkNode = {
    id: "graph",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "DOWN",
      "elk.hierarchyHandling": "INCLUDE_CHILDREN",
      "elk.layered.spacing.nodeNodeBetweenLayers": "34",
      "elk.spacing.nodeNode": "18",
      "elk.spacing.edgeLabel": "3",
      "elk.layered.thoroughness": view.nodes.length > 300 ? "2" : "7",
      "elk.layered.nodePlacement.strategy": view.nodes.length > 300 ? "LINEAR_SEGMENTS" : "BRANDES_KOEPF",
      "json.edgeCoords": "ROOT",
      "json.shapeCoords": "ROOT",
      ...options(0),
    },
    children: inside(0),
    edges: lines.map(({ from, to, label }, i) => ({
      id: `e${i}`,
      sources: [nameOf(from)],
      targets: [nameOf(to)],
      labels: isLabelled && label ? [{ text: brief(label), width: brief(label).length * 5.4 + 4, height: 12, layoutOptions: { "elk.edgeLabels.inline": "true" } }] : [],
    })),
  };
  const found: ElkNode = await elk.layout(asked);
  const boxes: Box[] = [];
  const byId = new Map(view.nodes.map((node) => [String(node.id), node]));
  const walk = (at: ElkNode): void => {
    for (const child of at.children ?? []) {
      const grid = grids.get(child.id);
      if (grid) {
        boxes.push(...grid.boxes.map((box) => ({ ...box, x: child.x! + box.x, y: child.y! + box.y })));
        continue;
      }
      boxes.push({ node: byId.get(child.id)!, x: child.x!, y: child.y!, width: child.width!, height: child.height! });
      walk(child);
    }
  };
  walk(found);
  const ways = (found.edges ?? []).map((one) => {
    const { from, to, label: text, ...line } = lines[Number(one.id.slice(1))]!;
    const section = one.sections?.[0];
    const points = section ? [section.startPoint, ...(section.bendPoints ?? []), section.endPoint] : [];
    const label = one.labels?.[0];
    const middle = points[points.length >> 1] ?? { x: 0, y: 0 };
    return {
      ...line,
      arrives: typeof to === "number",
      d: points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join(""),
      label: text,
      x: label ? label.x! + label.width! / 2 : middle.x,
      y: label ? label.y! + label.height! / 2 : middle.y,
    };
  });
  return { boxes, ways, isLabelled, width: found.width ?? 0, height: found.height ?? 0 };
}
