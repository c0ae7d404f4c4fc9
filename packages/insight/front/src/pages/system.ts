// The parts of a machine that scalars `system/...` tell of, in the order in which they are shown.
const parts = ["cpu", "memory", "disk", "network"];

export function partOf(tag: string): string {
  const name = tag.replace(/^system\/(process_|proc\.)?/, "").toLowerCase();
  return /^gpu\D?(\d+)/.exec(name)?.slice(1).map((number) => `gpu${number}`)[0] ?? parts.find((part) => name.startsWith(part)) ?? "other";
}

export function partsOf(tags: string[]): string[] {
  const place = (part: string) => (parts.includes(part) ? parts.indexOf(part) : part.startsWith("gpu") ? 100 + Number(part.slice(3)) : Infinity);
  return [...new Set(tags.map(partOf))].sort((a, b) => place(a) - place(b));
}
