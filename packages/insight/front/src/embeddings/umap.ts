// UMAP (McInnes, Healy, Melville 2018, arXiv:1802.03426): points are laid out so that near neighbours stay near.
// Neighbours are given; the layout begins with coordinates that are given, too, and is the same at every run.

export interface Job {
  places: Int32Array; // neighbours of each point, row after row
  distances: Float32Array;
  start: Float32Array; // coordinates, row after row
  dimensions: number;
  spread: number; // the least distance of points in the layout
  rounds: number;
}

interface Edges {
  from: Int32Array;
  to: Int32Array;
  weight: Float32Array;
}

// Of each point the distance to its nearest neighbour, and the width with which the weights of its neighbours add up to log2(their number).
function widths(distances: Float32Array, count: number, k: number): { nearest: Float32Array; width: Float32Array } {
  const nearest = new Float32Array(count);
  const width = new Float32Array(count);
  const mean = distances.reduce((a, b) => a + b, 0) / Math.max(1, distances.length);
  const target = Math.log2(k + 1);
  for (let i = 0; i < count; i++) {
    const row = distances.subarray(i * k, (i + 1) * k);
    nearest[i] = row.find((d) => d > 0) ?? 0;
    let [low, high, at] = [0, Infinity, 1];
    for (let n = 0; n < 64; n++) {
      let sum = 0;
      for (const d of row) sum += d > nearest[i]! ? Math.exp(-(d - nearest[i]!) / at) : 1;
      if (Math.abs(sum - target) < 1e-5) break;
      if (sum > target) [high, at] = [at, (low + at) / 2];
      else [low, at] = [at, high === Infinity ? at * 2 : (at + high) / 2];
    }
    const own = row.reduce((a, b) => a + b, 0) / Math.max(1, k);
    width[i] = Math.max(at, 1e-3 * (nearest[i] ? own : mean), 1e-12);
  }
  return { nearest, width };
}

// Weights a and b of both directions become a + b - ab.
function union(job: Job, count: number, k: number): Edges {
  const { nearest, width } = widths(job.distances, count, k);
  const weights = new Map<number, number>();
  for (let i = 0; i < count; i++) {
    for (let n = i * k; n < (i + 1) * k; n++) {
      const j = job.places[n]!;
      const weight = Math.exp(-Math.max(0, job.distances[n]! - nearest[i]!) / width[i]!);
      const key = i < j ? i * count + j : j * count + i;
      const other = weights.get(key);
      weights.set(key, other === undefined ? weight : other + weight - other * weight);
    }
  }
  const from = new Int32Array(weights.size);
  const to = new Int32Array(weights.size);
  const weight = new Float32Array(weights.size);
  let at = 0;
  for (const [key, value] of weights) {
    (from[at] = Math.floor(key / count)), (to[at] = key % count), (weight[at] = value);
    at += 1;
  }
  return { from, to, weight };
}

// a and b of 1 / (1 + a x^2b), nearest to a curve that is 1 up to `spread` and then falls as exp(spread - x): by least squares.
export function curve(spread: number): [number, number] {
  const xs = Array.from({ length: 300 }, (_, i) => (3 * (i + 1)) / 300);
  const loss = (a: number, b: number) =>
    xs.reduce((sum, x) => sum + (1 / (1 + a * x ** (2 * b)) - (x < spread ? 1 : Math.exp(spread - x))) ** 2, 0);
  let [a, b, best] = [1.5, 0.9, loss(1.5, 0.9)];
  for (let step = 0.5; step > 1e-4; step /= 1.5) {
    for (let moved = true; moved; ) {
      moved = false;
      for (const [x, y] of [[a + step, b], [a - step, b], [a, b + step], [a, b - step]] as const) {
        const found = x > 0 && y > 0 ? loss(x, y) : Infinity;
        if (found < best) (a = x), (b = y), (best = found), (moved = true);
      }
    }
  }
  return [a, b];
}

function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Lays points out round by round; gives the round and the coordinates, which are the same array each time.
export function* umap(job: Job): Generator<{ round: number; coordinates: Float32Array }> {
  const { dimensions, rounds } = job;
  const count = job.start.length / dimensions;
  const k = count ? job.places.length / count : 0;
  const next = random(7);
  const at = Float32Array.from(job.start);
  // The beginning is 10 units wide; points at one place are moved apart a little.
  const widest = at.reduce((most, v) => Math.max(most, Math.abs(v)), 0) || 1;
  for (let i = 0; i < at.length; i++) at[i] = (at[i]! / widest) * 10 + (next() - 0.5) * 1e-2;
  const { from, to, weight } = union(job, count, k);
  const [a, b] = curve(job.spread);
  const strongest = weight.reduce((most, w) => Math.max(most, w), 0) || 1;
  const every = weight.map((w) => (w / strongest < 1 / rounds ? Infinity : strongest / w)); // rounds between two uses of an edge
  const due = every.slice();
  const away = every.map((n) => n / 5); // five other points are pushed away for each pull
  const awayDue = away.slice();
  const clip = (v: number) => (v > 4 ? 4 : v < -4 ? -4 : v);
  for (let round = 1; round <= rounds; round++) {
    const rate = 1 - (round - 1) / rounds;
    for (let e = 0; e < from.length; e++) {
      if (due[e]! > round) continue;
      const i = from[e]! * dimensions;
      const j = to[e]! * dimensions;
      let square = 0;
      for (let d = 0; d < dimensions; d++) square += (at[i + d]! - at[j + d]!) ** 2;
      if (square > 0) {
        const pull = (-2 * a * b * square ** (b - 1)) / (a * square ** b + 1);
        for (let d = 0; d < dimensions; d++) {
          const step = clip(pull * (at[i + d]! - at[j + d]!)) * rate;
          at[i + d] = at[i + d]! + step;
          at[j + d] = at[j + d]! - step;
        }
      }
      due[e] = due[e]! + every[e]!;
      const pushes = Math.floor((round - awayDue[e]!) / away[e]!);
      for (let p = 0; p < pushes; p++) {
        // Either end of the edge is pushed, in turn.
        const own = p % 2 ? j : i;
        const other = Math.floor(next() * count) * dimensions;
        if (other === own) continue;
        let far = 0;
        for (let d = 0; d < dimensions; d++) far += (at[own + d]! - at[other + d]!) ** 2;
        const push = (2 * b) / ((0.001 + far) * (a * far ** b + 1));
        for (let d = 0; d < dimensions; d++) at[own + d] = at[own + d]! + (far > 0 ? clip(push * (at[own + d]! - at[other + d]!)) : 4) * rate;
      }
      awayDue[e] = awayDue[e]! + pushes * away[e]!;
    }
    yield { round, coordinates: at };
  }
}
