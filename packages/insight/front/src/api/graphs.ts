import { get, of } from "./http";

export interface GraphRow {
  id: string;
  step: number | null; // null: a file
  time: number;
  size: number;
}

export interface Typed {
  dtype?: string;
  shape?: number[] | null;
}

export type NodeKind = "scope" | "aggregation" | "part" | "operator" | "parameter" | "constant" | "output";

// Of two graphs as one: how many of a node's leaves are alike in both, differ, or are only on the left or the right.
export type State = "same" | "changed" | "left" | "right";
export type Counts = Record<State, number>;

export interface GraphNode extends Typed {
  id: number;
  parent: number;
  name: string;
  label: string;
  kind: NodeKind;
  type: string;
  leaves: number;
  open: boolean;
  dynamic?: boolean;
  difference?: Counts;
}

export interface GraphEdge extends Typed {
  from: number;
  to: number;
  count: number;
  control: boolean;
  side?: "both" | "left" | "right";
}

export interface View {
  name: string;
  leaves: number;
  nodes: GraphNode[];
  edges: GraphEdge[];
  difference?: Counts;
}

export interface End extends Typed {
  name: string;
  type: string;
  control: boolean;
}

export interface NodeInfo extends GraphNode {
  path: string[];
  children: number;
  attributes: Record<string, string>;
  source: string;
  output_bytes?: number | null;
  unknown_outputs?: number;
  inputs: End[];
  outputs: End[];
  changes?: { what: string; left: string; right: string }[];
}

export interface Match {
  name: string;
  label: string;
  kind: NodeKind;
  type: string;
  path: string[];
}

// What a node gives: bytes of all outputs whose size is known, how many sizes are not, and how many are of each dtype.
export interface Output {
  bytes: number | null;
  unknown: number;
  dtypes: Record<string, number>;
}

// What a node cost in a step, how many nodes in it the compiler fused with others (the node that has the time, of a single one), and what of theirs was not finite.
export interface Measure {
  nanoseconds: number | null;
  fused: number;
  in: string;
  nonfinite: NotFinite | null;
}
// `within`: operators in the branches or the loop of a single node, those first with which it began.
export interface NotFinite {
  nodes: number;
  first: number;
  nan: number;
  inf: number;
  "-inf": number;
  step: number;
  within: { name: string; first: boolean; nan: number; inf: number; "-inf": number }[];
}
export interface Measures {
  times: { steps: number; nodes: number; unattributed: number } | null;
  faults: { dump: string | null; looked: number | null; iterations: number | null } | null;
  nodes: Record<string, Measure>;
}

// The last operator of a pipeline, those before it are its children.
export type Stage = { op_type?: string; children: Stage[]; [parameter: string]: unknown };

export interface GraphList {
  graphs: GraphRow[];
  measures: { times: boolean; nonfinite: boolean };
}
export const graphList = (run: string) => get<GraphList>(`${of(run)}/graphs`);
export const graphs = async (run: string) => (await graphList(run)).graphs;

// A second graph, that the first one is compared with.
export interface Second {
  run: string;
  graph: string;
}

const asked = (run: string, what: string, graph: string, forward: boolean, second?: Second) =>
  [`${of(run)}/graphs/${second ? "difference/" : ""}${what}`, { graph, forward: String(forward), ...(second && { other_run: second.run, other: second.graph }) }] as const;

// `forward`: without gradients and the optimizer.
export function view(run: string, graph: string, forward: boolean, open: string[], second?: Second): Promise<View> {
  const [path, query] = asked(run, "view", graph, forward, second);
  return get<View>(path, { ...query, open });
}
export function node(run: string, graph: string, forward: boolean, name: string, second?: Second): Promise<NodeInfo> {
  const [path, query] = asked(run, "node", graph, forward, second);
  return get<NodeInfo>(path, { ...query, name });
}
// By the ids of what is seen.
export async function outputs(run: string, graph: string, forward: boolean, open: string[]): Promise<Record<string, Output>> {
  const [path, query] = asked(run, "outputs", graph, forward);
  return (await get<{ outputs: Record<string, Output> }>(path, { ...query, open })).outputs;
}
export function measures(run: string, graph: string, forward: boolean, open: string[], nonfinite: boolean): Promise<Measures> {
  const [path, query] = asked(run, "measures", graph, forward);
  return get<Measures>(path, { ...query, open, nonfinite: String(nonfinite) });
}
export function search(run: string, graph: string, forward: boolean, text: string, second?: Second): Promise<{ total: number; nodes: Match[] }> {
  const [path, query] = asked(run, "search", graph, forward, second);
  return get<{ total: number; nodes: Match[] }>(path, { ...query, text, limit: 200 });
}
// Nodes that two graphs do not have alike.
export function differing(run: string, graph: string, forward: boolean, second: Second): Promise<{ total: number; nodes: (Match & { state: State })[] }> {
  const [path, query] = asked(run, "nodes", graph, forward, second);
  return get<{ total: number; nodes: (Match & { state: State })[] }>(path, query);
}
export const pipelines = async (run: string) => (await get<{ pipelines: { graph: Stage }[] }>(`${of(run)}/pipelines`)).pipelines;

export const typeText = (one: Typed) => (one.dtype ?? "") + (one.shape ? `[${one.shape.map((n) => (n < 0 ? "?" : n)).join(", ")}]` : "");
