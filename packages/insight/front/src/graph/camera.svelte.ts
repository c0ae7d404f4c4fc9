// What part of a drawing is seen: a point of it (x, y) lies at (x * scale + camera.x, y * scale + camera.y).
import type { Box, Drawing } from "./layout";

const LEAST = 0.005;
const GREATEST = 8;
const LEGIBLE = 0.22; // below it the names of nodes are dots
const READABLE = 0.5;

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

  // The whole drawing, or one box in the middle. Of a drawing whose names would be dots its beginning, to be read, and the whole
  // of it if that is shown already.
  fit(box?: Box): void {
    this.wanted = box;
    if (!this.drawing || !this.width || !this.height) return;
    if (!box) {
      const { width, height } = this.drawing;
      const [across, down] = [(this.width - 24) / Math.max(1, width), (this.height - 24) / Math.max(1, height)];
      const whole = Math.min(across, down);
      const begun = whole < LEGIBLE && this.begin(Math.min(1, Math.max(READABLE, across, down)));
      if (!begun) {
        this.scale = Math.min(1.4, Math.max(LEAST, whole));
        this.x = (this.width - width * this.scale) / 2;
        this.y = (this.height - height * this.scale) / 2;
      }
      return;
    }
    this.scale = Math.min(1.4, Math.max(0.7, this.scale, 0), (this.width - 24) / box.width, (this.height - 24) / box.height);
    this.centre(box.x + box.width / 2, box.y + box.height / 2);
  }

  // Shows the uppermost node at the upper edge; false if it is there.
  private begin(scale: number): boolean {
    const first = this.drawing!.boxes.reduce((one, other) => (other.y < one.y ? other : one));
    const most = this.width - 12 - this.drawing!.width * scale; // so that nothing is seen beside the drawing
    const middle = this.width / 2 - (first.x + first.width / 2) * scale;
    const x = most > 12 ? (this.width - this.drawing!.width * scale) / 2 : Math.min(12, Math.max(most, middle));
    if (this.scale === scale && this.x === x && this.y === 12) return false;
    [this.scale, this.x, this.y] = [scale, x, 12];
    return true;
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
