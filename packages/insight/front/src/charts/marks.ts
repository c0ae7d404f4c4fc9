// What stands in a chart for values that are not finite.
import type uPlot from "uplot";

// A triangle at the upper edge for +Infinity, at the lower for -Infinity, a cross for NaN.
export function marks(u: uPlot, odd: { x: number; word: string }[], stroke: string): void {
  const { ctx, bbox } = u;
  const size = 4 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = stroke;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { x, word } of odd) {
    const at = u.valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    const top = word === "Infinity" ? bbox.top + size : word === "-Infinity" ? bbox.top + bbox.height - size : bbox.top + bbox.height - 3 * size;
    ctx.beginPath();
    if (word === "NaN") {
      ctx.moveTo(at - size, top - size), ctx.lineTo(at + size, top + size), ctx.moveTo(at - size, top + size), ctx.lineTo(at + size, top - size);
      ctx.stroke();
    } else {
      const point = word === "Infinity" ? -size : size;
      ctx.moveTo(at, top + point), ctx.lineTo(at - size, top - point), ctx.lineTo(at + size, top - point);
      ctx.fill();
    }
  }
  ctx.restore();
}
