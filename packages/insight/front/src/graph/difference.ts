// How two graphs as one are shown: a state for each node, a mark that tells it without colours.
import type { Counts, GraphNode, State } from "../api/graphs";

export const MARKS: Record<State, string> = { same: "", changed: "≠", left: "−", right: "+" };

// Of all leaves alike or not; a scope that holds several states has changed.
export function stateOf(node: GraphNode): State | undefined {
  if (!node.difference) return undefined;
  const there = (Object.keys(node.difference) as State[]).filter((state) => node.difference![state]);
  return there.length === 1 ? there[0] : "changed";
}

export const countsText = (counts: Counts) => (["changed", "left", "right"] as const).filter((state) => counts[state]).map((state) => `${MARKS[state]}${counts[state]}`).join(" ");

// What stands in a node: its label, with its mark, or with the counts of what a scope holds.
export function labelOf(node: GraphNode): string {
  const state = stateOf(node);
  if (!state || state === "same") return node.label;
  return node.leaves > 1 || node.open ? `${node.label}  ${countsText(node.difference!)}` : `${MARKS[state]} ${node.label}`;
}
