// The debugger: sessions by MindInsight's interface, and what the service tells of them beside that.
import { get, send, ServiceError, text, type Value } from "./http";
import type { Match, NodeInfo, View } from "./graphs";
import type { Statistics } from "./media";

export interface DumpRow {
  dump: string;
  ranks: number[];
  session: string | null;
}

export interface Metadata {
  state: string;
  step: number;
  pos: string;
  enable_recheck: boolean;
  recommendation_confirmed: boolean;
  graph_version: number; // rises when nodes are others, as those of another training
  node_name: string;
  device_name: string;
  backend: string;
  // of running trainings
  training_done?: boolean;
  training_lost?: boolean; // its process is gone without a word
  reason?: string; // why it waits, if nobody asked it to
}

export interface Device {
  rank_id: number;
  graph_names: string[];
}

export interface TreeNode {
  name: string;
  type: string;
  subnode_count?: number;
  nodes?: TreeNode[];
}

export interface Param {
  name: string;
  value: number | boolean | string;
  actual_value?: Value | boolean | null;
}

export interface WatchPoint {
  id: number;
  name: string;
  watch_condition: { id: string; abbr: string; params: Param[] };
}

export interface PointHit extends WatchPoint {
  error_code: number;
  error_list: string[];
  reason?: string; // what bounds alone do not tell
}

export interface Hit {
  node_name: string;
  graph_name: string;
  tensors: { slot: number | string; watch_points: PointHit[] }[];
}

export interface HitPage {
  total: number;
  outdated: boolean;
  watch_point_hits: Hit[];
}

export interface ConditionParameter {
  name: string;
  type: string;
  default_value: number | boolean | null;
  param_type: string;
  required_params: string[];
}

export interface Condition {
  id: string;
  abbr: string;
  parameters: ConditionParameter[];
}

export interface Collection {
  id: string;
  conditions: Condition[];
}

// A watchpoint that is offered, with the number of nodes that it is about.
export interface Recommendation {
  id: string;
  condition: { id: string; abbr: string; params: Param[] };
  operator: string; // the type that alone it is meant for
  nodes: number;
}

export interface TensorRow {
  name: string;
  full_name: string;
  node_type: string;
  type: "input" | "output";
  is_hit: boolean;
  dtype?: string;
  shape?: number[];
  value?: string;
}

export interface Line {
  file_path: string;
  line_no: number;
  code_line: string;
}

export interface StackFile {
  file_path: string;
  items: Line[];
}

export interface Health {
  step: number;
  tensors: number;
  unknown: number; // without counts of what is not finite
  bad: number;
  nan: number;
  inf: number;
  "-inf": number;
}

export interface NonFinite {
  node: string;
  op_full_name: string;
  op_type: string;
  slot: number;
  step: number;
  kind: "nan" | "inf" | "-inf";
  count: number;
  size: number;
  born: boolean | null;
  source: string[];
}

export interface Why {
  step: number;
  total: number;
  rows: NonFinite[];
  way: NonFinite[];
}

export type Cell = Value | boolean | string;

export interface TensorView {
  name: string;
  step: number;
  dtype: string;
  shape: number[];
  dims: string;
  free: { dimension: number; start: number; size: number }[];
  rows: Cell[][];
  statistics: Statistics;
  overall: Statistics;
  steps: number[];
  other?: number;
  before?: Cell[][];
  apart?: Value[][];
  alike?: boolean[][];
  different?: number;
  greatest?: number | null;
}

export type Nested = Cell | Cell[] | Cell[][];

export interface Edit {
  slot: number;
  index: string; // "": all of it
  value: unknown;
}

// An output of an operator that ran once more; `recorded` null: there is nothing to compare it with.
export interface Made {
  slot: number;
  dtype: string;
  shape: number[];
  value: Nested;
  recorded: Nested | null;
  different: number | null;
}

export interface Apart {
  node: string;
  slot: number;
  type: string;
  kind: "values" | "shape" | "missing";
  different?: number;
  size?: number;
  greatest?: number | null;
  shapes?: [number[], number[]];
}

export interface Difference {
  compared: number;
  values: number;
  shape: number;
  missing: number;
  rows: Apart[];
}

// Where the service has MindInsight's interface; it is asked once.
interface Place {
  sessions: string;
  limit: number;
  online: boolean;
}
let place: Promise<Place> | undefined;
const placed = () => (place ??= get<Place>("debugger").catch((error) => ((place = undefined), Promise.reject(error))));
const at = async (path: string) => `../..${(await placed()).sessions}${path}`;
const ask = async <T>(path: string, query: Record<string, string | number> = {}) => get<T>(await at(path), query);
const tell = async <T>(path: string, body: unknown) => send<T>("POST", await at(path), body);

export const ONLINE = "0"; // the session over running trainings
export const about = () => placed();
export const dumps = async () => (await get<{ dumps: DumpRow[] }>("debugger/dumps")).dumps;
export const open = (dump: string) => tell<string>("", { session_type: "OFFLINE", dump_dir: dump });
// Whether `open` was refused since as many sessions are open as there may be.
export const isFull = (error: unknown) => error instanceof ServiceError && error.code === "5054B280";
export const close = (session: string) => tell<object>(`/${session}/delete`, {});

const of = (session: string) => `debugger/${encodeURIComponent(session)}`;
const its = (session: string) => `/${encodeURIComponent(session)}`;

export const all = (session: string, rank: number) =>
  tell<{ metadata: Metadata; graph: { graph_names: string[] }; watch_points: WatchPoint[]; devices: Device[] }>(`${its(session)}/retrieve`, { mode: "all", params: { rank_id: rank } });
export const children = async (session: string, rank: number, scope: string) => (await tell<{ graph: { nodes: TreeNode[] } }>(`${its(session)}/retrieve`, { mode: "node", params: { rank_id: rank, name: scope } })).graph.nodes;
export const watched = async (session: string, rank: number, watch: number) => (await tell<{ graph: { nodes: TreeNode[] } }>(`${its(session)}/retrieve`, { mode: "watchpoint", params: { rank_id: rank, watch_point_id: watch } })).graph.nodes;
export const poll = (session: string, pos: string) => ask<{ metadata: Partial<Metadata> }>(`${its(session)}/poll-data`, { pos });
export const search = async (session: string, query: { rank_id: number; name: string; node_category: string; stack_info_key_word: string }) => (await ask<{ nodes: TreeNode[] }>(`${its(session)}/search`, query)).nodes;
export const collections = (session: string) => ask<Collection[]>(`${its(session)}/condition-collections`);
export const recommendations = async (session: string) => (await ask<{ watch_points: Recommendation[] }>(`${its(session)}/recommended-watch-points`)).watch_points;
export const recommend = (session: string, wanted: boolean, points?: { id: string; params: Param[] }[]) => tell<{ id: number[] }>(`${its(session)}/set-recommended-watch-points`, { requestBody: { set_recommended: wanted, ...(points ? { watch_points: points } : {}) } });
export const createWatch = (session: string, rank: number, condition: { id: string; params: Param[] }, nodes: string[]) => tell<{ id: number }>(`${its(session)}/create-watchpoint`, { condition, watch_nodes: nodes, rank_id: rank });
export const updateWatch = (session: string, rank: number, watch: number, nodes: string[], add: boolean) => tell<object>(`${its(session)}/update-watchpoint`, { watch_point_id: watch, watch_nodes: nodes, mode: add ? 1 : 0, rank_id: rank });
export const deleteWatch = (session: string, watch: number | null) => tell<object>(`${its(session)}/delete-watchpoint`, { watch_point_id: watch });
export const recheck = (session: string) => tell<object>(`${its(session)}/recheck`, {});
export const control = (session: string, mode: string, level: string, more: object = {}) => tell<object>(`${its(session)}/control`, { mode, level, ...more });
export const hits = (session: string, rank: number, limit: number, offset: number) => tell<HitPage>(`${its(session)}/search-watchpoint-hits`, { rank_id: rank, group_condition: { limit, offset } });
export const tensorsOf = async (session: string, rank: number, node: string) => (await tell<{ tensor_history: TensorRow[] }>(`${its(session)}/tensor-history`, { name: node, rank_id: rank })).tensor_history;
export const stacks = (session: string, word: string, limit: number) => ask<{ total: number; stack_infos: StackFile[] }>(`${its(session)}/stacks`, { key_word: word, limit, offset: 0 });
export const fileOf = async (session: string, rank: number, tensor: string) => `.${(await placed()).sessions}${its(session)}/tensor-files/download?${new URLSearchParams({ name: tensor, rank_id: String(rank) })}`;

export const rerun = async (session: string, rank: number, node: string, edits: Edit[]) => (await tell<{ outputs: Made[] }>(`${its(session)}/rerun-operator`, { name: node, rank_id: rank, edits })).outputs;
export const editTensor = (session: string, rank: number, node: string, index: string, value: unknown) => tell<object>(`${its(session)}/edit-tensor`, { name: node, rank_id: rank, index, value });
export const dumpStep = (session: string, rank: number) => tell<{ folder: string; step: number }>(`${its(session)}/dump-step`, { rank_id: rank });
export const scriptOf = async (session: string, rank: number, node: string) => text(await at(`${its(session)}/operator-script`), { name: node, rank_id: rank });

export const steps = async (session: string, rank: number) => (await get<{ steps: { step: number; graphs: string[] }[] }>(`${of(session)}/steps`, { rank })).steps;
export const health = (session: string, rank: number, step: number) => get<Health>(`${of(session)}/health`, { rank, step });
export const why = (session: string, rank: number, step: number, name: string) => get<Why>(`${of(session)}/why`, { rank, step, name });
export const tensor = (session: string, query: { rank: number; step: number; name: string; dims: string; other?: number; against?: string; tolerance?: number }) => get<TensorView>(`${of(session)}/tensor`, query);
export const difference = (session: string, query: { rank: number; step: number; other: number; against: string; tolerance: number; limit: number }) => get<Difference>(`${of(session)}/difference`, query);
export const history = async (session: string, rank: number, name: string) => (await get<{ steps: ({ step: number } & Statistics)[] }>(`${of(session)}/history`, { rank, name })).steps;
export const graph = (session: string, rank: number, graph: string, open: string[]) => get<View>(`${of(session)}/graph`, { rank, graph, open });
export const graphNode = (session: string, rank: number, graph: string, name: string) => get<NodeInfo & { stack: Line[] }>(`${of(session)}/graph/node`, { rank, graph, name });
export const graphSearch = (session: string, rank: number, graph: string, text: string) => get<{ total: number; nodes: Match[] }>(`${of(session)}/graph/search`, { rank, graph, text, limit: 200 });

export const isBad = (health: Health) => health.bad > 0;
