// What part of a drawing is seen: a point of it (x, y) lies at (x * scale + camera.x, y * scale + camera.y).
import type { Box, Drawing } from "./layout";

const LEAST = 0.005;
const GREATEST = 8;

export class Camera {
  x = $state(0);
  y = $state(0);
  scale = $state(1);
  width = $state(0); // of the canvas
  height = $state(0);
  private drawing: Drawing | undefined;
  private wanted: Box | undefined; // waits until the canvas has a size

  resize(width: number, height: number): void {
    const first = !this.width || !this.height;
    this.width = width;
    this.height = height;
    if (first) this.fit(this.wanted);
  }

  show(drawing: Drawing, keep: boolean): void {
    this.drawing = drawing;
    if (!keep) this.fit();
  }

  // The whole drawing, or one box in the middle.
  fit(box?: Box): void {
    this.wanted = box;
    if (!this.drawing || !this.width || !this.height) return;
    const { width, height } = this.drawing;
    if (!box) {
      this.scale = Math.min(1.4, Math.max(LEAST, Math.min((this.width - 24) / Math.max(1, width), (this.height - 24) / Math.max(1, height))));
      this.x = (this.width - width * this.scale) / 2;
      this.y = (this.height - height * this.scale) / 2;
      return;
    }
    this.scale = Math.min(1.4, Math.max(0.7, this.scale, 0), (this.width - 24) / box.width, (this.height - 24) / box.height);
    this.centre(box.x + box.width / 2, box.y + box.height / 2);
  }

  centre(x: number, y: number): void {
    this.x = this.width / 2 - x * this.scale;
    this.y = this.height / 2 - y * this.scale;
  }

  move(dx: number, dy: number): void {
    this.x += dx;
    this.y += dy;
  }

  zoom(ratio: number, x = this.width / 2, y = this.height / 2): void {
    const scale = Math.min(GREATEST, Math.max(LEAST, this.scale * ratio));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
  }
}
