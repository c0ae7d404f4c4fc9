import { get } from "./http";

export type Kind = "data" | "run" | "checkpoint" | "export";

// Data, one opening of a run's folder, or a file; what is not known is left out, null or empty.
export interface Artifact {
  key: string;
  kind: Kind;
  label: string;
  run: string | null;
  session?: number | null; // which opening of the folder, if there are several
  left_out?: number; // checkpoints of the run that are not shown
  mode?: string;
  network?: string;
  script?: string;
  host?: string;
  git_commit?: string;
  git_dirty?: boolean;
  versions?: Record<string, string>;
  path?: string;
  sha256?: string;
  size?: number; // bytes
  files?: number;
  sources?: string[];
  step?: number | null;
  time?: number | null; // seconds since 1970
}

export interface Provenance {
  loading: boolean;
  more: number; // nodes that are left out
  nodes: Artifact[];
  edges: [from: number, to: number][];
}

export const artifacts = (query: string, all: boolean) => get<Provenance>("artifacts", { query, all: String(all) });
