// Where points are seen: turned, enlarged and put on the plane of the screen.

export interface View {
  yaw: number; // radians
  pitch: number;
  zoom: number;
  x: number; // shift in pixels
  y: number;
}

export const still: View = { yaw: 0.6, pitch: 0.35, zoom: 1, x: 0, y: 0 };

export interface Seen {
  x: Float32Array;
  y: Float32Array;
  depth: Float32Array; // 0 far to 1 near; without a third dimension 1
  order: Uint32Array; // from the farthest on
}

// Coordinates of chosen columns, in the middle of their range, the widest range being -1 to 1.
export function scaled(data: Float32Array, width: number, columns: number[]): Float32Array {
  const rows = width ? data.length / width : 0;
  const found = new Float32Array(rows * columns.length);
  let widest = 0;
  const middle = columns.map((column) => {
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < rows; i++) {
      const v = column < width ? data[i * width + column]! : 0;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    widest = Math.max(widest, high - low);
    return (low + high) / 2;
  });
  for (let i = 0; i < rows; i++) columns.forEach((column, d) => (found[i * columns.length + d] = column < width && widest ? (2 * (data[i * width + column]! - middle[d]!)) / widest : 0));
  return found;
}

export function seen(points: Float32Array, dimensions: 2 | 3, view: View, width: number, height: number): Seen {
  const rows = points.length / dimensions;
  const [x, y, depth] = [new Float32Array(rows), new Float32Array(rows), new Float32Array(rows)];
  const order = new Uint32Array(rows);
  const size = 0.45 * Math.min(width, height) * view.zoom;
  const [cy, sy, cp, sp] = [Math.cos(view.yaw), Math.sin(view.yaw), Math.cos(view.pitch), Math.sin(view.pitch)];
  for (let i = 0; i < rows; i++) {
    order[i] = i;
    let [a, b, c] = [points[i * dimensions]!, points[i * dimensions + 1]!, 0];
    if (dimensions === 3) {
      const z = points[i * 3 + 2]!;
      const turned = -sy * a + cy * z;
      a = cy * a + sy * z;
      c = sp * b + cp * turned;
      b = cp * b - sp * turned;
    }
    const near = dimensions === 3 ? 3 / (3 - c) : 1;
    x[i] = width / 2 + view.x + a * size * near;
    y[i] = height / 2 + view.y - b * size * near;
    depth[i] = dimensions === 3 ? Math.min(1, Math.max(0, (c + 1.5) / 3)) : 1;
  }
  if (dimensions === 3) {
    // By buckets of depth: exact enough, and the same time for any order.
    const buckets = 64;
    const starts = new Uint32Array(buckets + 1);
    const bucket = (i: number) => Math.min(buckets - 1, Math.floor(depth[i]! * buckets));
    for (let i = 0; i < rows; i++) starts[bucket(i) + 1]!++;
    for (let i = 0; i < buckets; i++) starts[i + 1] = starts[i + 1]! + starts[i]!;
    for (let i = 0; i < rows; i++) order[starts[bucket(i)]!++] = i;
  }
  return { x, y, depth, order };
}

// The nearest point within some pixels, -1 for none; of equal ones the one in front.
export function under(points: Seen, x: number, y: number, reach = 8): number {
  let [best, least] = [-1, reach * reach];
  for (const i of points.order) {
    const far = (points.x[i]! - x) ** 2 + (points.y[i]! - y) ** 2;
    if (far <= least) (best = i), (least = far);
  }
  return best;
}

// Of a sample of points, how many of their nearest neighbours in all dimensions are so in the layout, 0 to 1.
export function kept(points: Float32Array, dimensions: number, samples: { place: number; nearest: number[] }[]): number {
  const rows = points.length / dimensions;
  let [held, of] = [0, 0];
  for (const { place, nearest } of samples) {
    const far = new Float64Array(rows);
    for (let i = 0; i < rows; i++) for (let d = 0; d < dimensions; d++) far[i]! += (points[i * dimensions + d]! - points[place * dimensions + d]!) ** 2;
    far[place] = Infinity;
    const limit = Float64Array.from(far).sort()[nearest.length - 1]!;
    held += nearest.filter((one) => far[one]! <= limit).length;
    of += nearest.length;
  }
  return of ? held / of : 0;
}
