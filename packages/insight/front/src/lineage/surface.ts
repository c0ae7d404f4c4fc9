// A target between runs: a Delaunay triangulation of where they are, and the bands of equal height in it.
export interface Point {
  x: number; // of 0 to 1, as z
  y: number;
  z: number;
}

type Triangle = [number, number, number];

const FAR = 1e3; // corners of the triangle that holds all others

// Runs at one place are one, with the mean of what they reached.
export function joined(points: Point[]): Point[] {
  const found = new Map<string, { sum: number; count: number; at: Point }>();
  for (const at of points) {
    const key = `${at.x} ${at.y}`;
    const one = found.get(key) ?? { sum: 0, count: 0, at };
    found.set(key, { ...one, sum: one.sum + at.z, count: one.count + 1 });
  }
  return [...found.values()].map(({ sum, count, at }) => ({ ...at, z: sum / count }));
}

const turn = (a: Point, b: Point, c: Point) => (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);

// Whether d lies in the circle through a, b, c, which turn left; points on it do not.
function isInside(a: Point, b: Point, c: Point, d: Point): boolean {
  const rows = [a, b, c].map((p) => [p.x - d.x, p.y - d.y, (p.x - d.x) ** 2 + (p.y - d.y) ** 2] as const);
  const [[ax, ay, aa], [bx, by, bb], [cx, cy, cc]] = rows as [[number, number, number], [number, number, number], [number, number, number]];
  return ax * (by * cc - bb * cy) - ay * (bx * cc - bb * cx) + aa * (bx * cy - by * cx) > 1e-12;
}

// Triangles of places of `points`, each turning left; [] where all lie on one line.  Source: Bowyer 1981, Watson 1981.
export function triangulated(points: Point[]): Triangle[] {
  const n = points.length;
  const all = [...points, { x: -FAR, y: -FAR, z: 0 }, { x: FAR, y: -FAR, z: 0 }, { x: 0, y: FAR, z: 0 }];
  let triangles: Triangle[] = [[n, n + 1, n + 2]];
  for (let i = 0; i < n; i++) {
    const sides = new Map<string, [number, number]>();
    const kept: Triangle[] = [];
    for (const one of triangles) {
      if (!isInside(all[one[0]]!, all[one[1]]!, all[one[2]]!, all[i]!)) {
        kept.push(one);
        continue;
      }
      for (const [from, to] of [[one[0], one[1]], [one[1], one[2]], [one[2], one[0]]] as [number, number][]) {
        // A side of two triangles that go lies inside of the hole.
        if (!sides.delete(`${to} ${from}`)) sides.set(`${from} ${to}`, [from, to]);
      }
    }
    triangles = [...kept, ...[...sides.values()].map(([from, to]): Triangle => [from, to, i])];
  }
  return triangles.filter((one) => one.every((corner) => corner < n) && turn(all[one[0]]!, all[one[1]]!, all[one[2]]!) > 1e-9);
}

// The part of a polygon where `of` is not negative.
function clipped(polygon: Point[], of: (p: Point) => number): Point[] {
  return polygon.flatMap((a, i) => {
    const b = polygon[(i + 1) % polygon.length]!;
    const [u, v] = [of(a), of(b)];
    const kept = u >= 0 ? [a] : [];
    if (u >= 0 === v >= 0) return kept;
    const t = u / (u - v);
    return [...kept, { x: a.x + t * (b.x - a.x), y: a.y + t * (b.y - a.y), z: a.z + t * (b.z - a.z) }];
  });
}

// `count` bands of height from 0 to 1, each as a path of SVG; `place` gives the drawing's coordinates.
export function bands(points: Point[], triangles: Triangle[], count: number, place: (p: Point) => [number, number]): string[] {
  return Array.from({ length: count }, (_, i) => {
    const [low, high] = [i / count, (i + 1) / count];
    return triangles
      .map((one) => {
        const corners = one.map((corner) => points[corner]!);
        const above = i ? clipped(corners, (p) => p.z - low) : corners;
        return i + 1 < count ? clipped(above, (p) => high - p.z) : above;
      })
      .filter((polygon) => polygon.length > 2)
      .map((polygon) => `M${polygon.map((p) => place(p).map((at) => at.toFixed(1)).join(" ")).join("L")}Z`)
      .join("");
  });
}
