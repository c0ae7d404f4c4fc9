// Runs of which none is better in both of two targets.
export interface Pair {
  run: string;
  a: number;
  b: number;
}

// Of losses, errors and the like the least is the best.
export const isLessBetter = (name: string) => /loss|err|mae|mse|perplex|distance|time/i.test(name);

export function front(pairs: Pair[], lessA: boolean, lessB: boolean): Set<string> {
  const at = (one: Pair) => [lessA ? one.a : -one.a, lessB ? one.b : -one.b] as const;
  const sorted = [...pairs].sort((p, q) => at(p)[0] - at(q)[0] || at(p)[1] - at(q)[1]);
  const found = new Set<string>();
  let best = Infinity;
  let last: readonly [number, number] | undefined;
  for (const one of sorted) {
    const now = at(one);
    const isSame = last && now[0] === last[0] && now[1] === last[1];
    if (now[1] < best || isSame) found.add(one.run), (best = now[1]), (last = now);
  }
  return found;
}
