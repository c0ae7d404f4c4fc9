// Places of nodes and ways of edges, computed by ELK in a worker.
import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import worker from "elkjs/lib/elk-worker.min.js?url";
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
  edge: GraphEdge;
  d: string; // a path of SVG
  label: string;
  x: number; // of the label's middle
  y: number;
}

export interface Drawing {
  boxes: Box[]; // what is open before what it holds
  ways: Way[];
  width: number;
  height: number;
}

const LONGEST = 34; // characters of a label
const LONGEST_LABEL = 36; // characters; the tip has all of it
export const brief = (text: string) => (text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text);
const MOST_LABELS = 250; // edges, with more of them their labels are left to the tip
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

export async function arrange(view: View, tensors: (n: number) => string): Promise<Drawing> {
  const children = new Map<number, GraphNode[]>();
  for (const node of view.nodes) children.set(node.parent, [...(children.get(node.parent) ?? []), node]);
  const withLabels = view.edges.length <= MOST_LABELS;
  const textOf = (edge: GraphEdge) => (edge.control ? "" : edge.count > 1 ? tensors(edge.count) : typeText(edge));
  const made = (node: GraphNode): ElkNode =>
    node.open
      ? { id: String(node.id), children: (children.get(node.id) ?? []).map(made), layoutOptions: { "elk.padding": "[top=34,left=14,bottom=14,right=14]", "elk.nodeSize.constraints": "MINIMUM_SIZE", "elk.nodeSize.minimum": `(${sized(node).width},50)` } }
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
    },
    children: (children.get(0) ?? []).map(made),
    edges: view.edges.map((edge, i) => ({
      id: `e${i}`,
      sources: [String(edge.from)],
      targets: [String(edge.to)],
      labels: withLabels && textOf(edge) ? [{ text: brief(textOf(edge)), width: brief(textOf(edge)).length * 5.4 + 4, height: 12, layoutOptions: { "elk.edgeLabels.inline": "true" } }] : [],
    })),
  };
  const found: ElkNode = await elk.layout(asked);
  const boxes: Box[] = [];
  const byId = new Map(view.nodes.map((node) => [String(node.id), node]));
  const walk = (at: ElkNode): void => {
    for (const child of at.children ?? []) {
      boxes.push({ node: byId.get(child.id)!, x: child.x!, y: child.y!, width: child.width!, height: child.height! });
      walk(child);
    }
  };
  walk(found);
  const ways = (found.edges ?? []).map((one) => {
    const edge = view.edges[Number(one.id.slice(1))]!;
    const section = one.sections?.[0];
    const points = section ? [section.startPoint, ...(section.bendPoints ?? []), section.endPoint] : [];
    const label = one.labels?.[0];
    const middle = points[points.length >> 1] ?? { x: 0, y: 0 };
    return {
      edge,
      d: points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join(""),
      label: textOf(edge),
      x: label ? label.x! + label.width! / 2 : middle.x,
      y: label ? label.y! + label.height! / 2 : middle.y,
    };
  });
  return { boxes, ways, width: found.width ?? 0, height: found.height ?? 0 };
}
