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
}

export interface GraphEdge extends Typed {
  from: number;
  to: number;
  count: number;
  control: boolean;
}

export interface View {
  name: string;
  leaves: number;
  nodes: GraphNode[];
  edges: GraphEdge[];
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
  inputs: End[];
  outputs: End[];
}

export interface Match {
  name: string;
  label: string;
  kind: NodeKind;
  type: string;
  path: string[];
}

// The last operator of a pipeline, those before it are its children.
export type Stage = { op_type?: string; children: Stage[]; [parameter: string]: unknown };

export const graphs = async (run: string) => (await get<{ graphs: GraphRow[] }>(`${of(run)}/graphs`)).graphs;
// `forward`: without gradients and the optimizer.
export const view = (run: string, graph: string, forward: boolean, open: string[]) => get<View>(`${of(run)}/graphs/view`, { graph, forward: String(forward), open });
export const node = (run: string, graph: string, forward: boolean, name: string) => get<NodeInfo>(`${of(run)}/graphs/node`, { graph, forward: String(forward), name });
export const search = (run: string, graph: string, forward: boolean, text: string) => get<{ total: number; nodes: Match[] }>(`${of(run)}/graphs/search`, { graph, forward: String(forward), text, limit: 200 });
export const pipelines = async (run: string) => (await get<{ pipelines: { graph: Stage }[] }>(`${of(run)}/pipelines`)).pipelines;

export const typeText = (one: Typed) => (one.dtype ?? "") + (one.shape ? `[${one.shape.map((n) => (n < 0 ? "?" : n)).join(", ")}]` : "");
