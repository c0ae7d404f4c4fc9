import { get, of, type Query } from "./http";

export interface Precision {
  total: number; // whose names have the text
  reduced: number; // of all
  flagged: number;
  operators: { id: number; name: string; label: string; type: string; flag: string; reduced: boolean | null; inputs: string[]; outputs: string[] }[];
}

export const precision = (run: string, graph: string, text: string, offset: number, limit: number) => get<Precision>(`${of(run)}/graphs/precision`, { graph, text, offset, limit });
// The path of all operators as a file of spreadsheets, with its query.
export const precisionSheet = (run: string, graph: string): [string, Query] => [`${of(run)}/graphs/precision.xlsx`, { graph }];
