// Tags that belong together: those of the same match of a pattern.
export interface Group {
  name: string;
  tags: string[];
}

// A pattern's match, or the first group of it, names a group; undefined if the pattern cannot be read. Tags without a match
// are the last group, whose name is empty.
export function groupsOf(tags: string[], pattern: string): Group[] | undefined {
  let expression: RegExp;
  try {
    expression = new RegExp(pattern);
  } catch {
    return undefined;
  }
  const groups = new Map<string, string[]>();
  for (const tag of tags) {
    const match = expression.exec(tag);
    const name = match ? (match[1] ?? match[0]) : "";
    groups.set(name, [...(groups.get(name) ?? []), tag]);
  }
  const rest = groups.get("");
  groups.delete("");
  return [...groups, ...(rest ? [["", rest] as const] : [])].map(([name, own]) => ({ name, tags: [...own] }));
}
