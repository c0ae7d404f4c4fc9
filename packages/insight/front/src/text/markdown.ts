// The part of Markdown that texts of trainings have: tables, headings, lists, code, emphasis. Nothing becomes HTML: what is not
// understood stays as it is written, and links are shown, not followed.

export type Span = { kind: "plain" | "strong" | "emphasis" | "code"; text: string };
export type Block =
  | { kind: "paragraph"; spans: Span[] }
  | { kind: "heading"; level: number; spans: Span[] }
  | { kind: "list"; ordered: boolean; items: Span[][] }
  | { kind: "code"; text: string }
  | { kind: "table"; head: string[]; rows: string[][] };

const fence = /^ {0,3}(`{3,}|~{3,})/;
const heading = /^(#{1,6}) +(.*?)(?: +#+)? *$/;
const item = /^ {0,3}(?:[-*+]|(\d{1,9})[.)]) +(.*)$/;
const rule = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;

// Whether a text has something that `blocks` shows otherwise than it is written.
export const isMarkdown = (text: string) => blocks(text).some((block) => block.kind !== "paragraph" || block.spans.some((span) => span.kind !== "plain"));

export function blocks(text: string): Block[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const found: Block[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length) found.push({ kind: "paragraph", spans: spans(paragraph.join("\n")) });
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const open = fence.exec(line)?.[1];
    const head = heading.exec(line);
    const first = item.exec(line);
    if (open) {
      flush();
      const code: string[] = [];
      while (++i < lines.length && !lines[i]!.trim().startsWith(open)) code.push(lines[i]!);
      found.push({ kind: "code", text: code.join("\n") });
    } else if (line.includes("|") && i + 1 < lines.length && rule.test(lines[i + 1]!) && lines[i + 1]!.includes("|") && cells(line).length === cells(lines[i + 1]!).length) {
      flush();
      const names = cells(line);
      const rows: string[][] = [];
      for (i += 1; i + 1 < lines.length && lines[i + 1]!.includes("|"); i++) rows.push(names.map((_, k) => cells(lines[i + 1]!)[k] ?? ""));
      found.push({ kind: "table", head: names, rows });
    } else if (head) {
      flush();
      found.push({ kind: "heading", level: head[1]!.length, spans: spans(head[2]!) });
    } else if (first) {
      flush();
      const items = [spans(first[2]!)];
      for (let next; i + 1 < lines.length && (next = item.exec(lines[i + 1]!)) && !next[1] === !first[1]; i++) items.push(spans(next[2]!));
      found.push({ kind: "list", ordered: first[1] !== undefined, items });
    } else if (line.trim()) paragraph.push(line);
    else flush();
  }
  flush();
  return found;
}

// Cells of a line of a table; `\|` is a bar in a cell.
function cells(line: string): string[] {
  const found = line.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
  if (found.length > 1 && !found.at(-1)!.trim()) found.pop();
  return found.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

export function spans(text: string): Span[] {
  const found: Span[] = [];
  let at = 0;
  for (const match of text.matchAll(/`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])/g)) {
    if (match.index > at) found.push({ kind: "plain", text: text.slice(at, match.index) });
    const kind = match[1] !== undefined ? "code" : match[2] !== undefined ? "strong" : "emphasis";
    found.push({ kind, text: (match[1] ?? match[2] ?? match[3])! });
    at = match.index + match[0].length;
  }
  if (at < text.length || !found.length) found.push({ kind: "plain", text: text.slice(at) });
  return found;
}
