// Labels of a file that the user chooses: cells with tabs between them, with or without names of columns in the first line.

export interface Table {
  columns: string[];
  labels: string[][];
}

// A number: so many lines there are, which do not fit.
export function read(text: string, rows: number): Table | number {
  const lines = text.replace(/\r/g, "").replace(/\n$/, "").split("\n").map((line) => line.split("\t"));
  if (lines.length === rows + 1) return { columns: lines[0]!, labels: lines.slice(1) };
  if (lines.length === rows) return { columns: lines[0]!.map((_, i) => (lines[0]!.length > 1 ? `label ${i + 1}` : "label")), labels: lines };
  return lines.length;
}
