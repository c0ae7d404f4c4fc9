// Edges between two scopes of which one is open, at least, as one: from the nodes that they leave to a place at the edge of their scope, from
// there to the other scope, and on to the nodes that they reach.
import type { GraphEdge, View } from "../api/graphs";

export interface Bundle {
  from: number; // siblings: scopes, or a node
  to: number;
  edges: GraphEdge[];
}

// (bundles of two edges or more, the edges that are drawn by themselves).
export function bundled(view: View): { bundles: Bundle[]; single: GraphEdge[] } {
  const parents = new Map(view.nodes.map((node) => [node.id, node.parent]));
  // A node and the scopes around it, the outermost first.
  const around = (id: number): number[] => {
    const found = [];
    for (let at: number | undefined = id; at !== undefined && parents.has(at); at = parents.get(at)) found.unshift(at);
    return found;
  };
  const groups = new Map<string, Bundle>();
  const single: GraphEdge[] = [];
  for (const edge of view.edges) {
    const [left, right] = [around(edge.from), around(edge.to)];
    const apart = left.findIndex((id, depth) => id !== right[depth]);
    const [from, to] = [left[apart], right[apart]];
    if (from === undefined || to === undefined || (from === edge.from && to === edge.to)) {
      single.push(edge);
      continue;
    }
    const key = `${from} ${to} ${edge.control}`;
    const group = groups.get(key) ?? { from, to, edges: [] };
    group.edges.push(edge);
    groups.set(key, group);
  }
  const bundles: Bundle[] = [];
  for (const group of groups.values()) {
    if (group.edges.length > 1) bundles.push(group);
    else single.push(...group.edges);
  }
  return { bundles, single };
}
