// The UMAP layout of an embedding, while a worker makes it.
import { graph, type Which } from "../api/embeddings";
import { textOf } from "../follow.svelte";
import type { Job } from "./umap";

export interface Wanted {
  which: Which;
  axes: Float32Array; // coordinates on principal axes
  width: number; // number of those
  rows: number;
  dimensions: number;
  neighbours: number;
  spread: number;
}

export class Layout {
  coordinates = $state.raw<Float32Array>();
  round = $state(0);
  rounds = $state(0);
  failure = $state("");
  private worker: Worker | undefined;
  private asked = 0;

  get running(): boolean {
    return this.rounds > 0 && this.round < this.rounds;
  }

  async start({ which, axes, width, rows, dimensions, neighbours, spread }: Wanted): Promise<void> {
    this.stop();
    this.coordinates = undefined;
    this.failure = "";
    const mine = ++this.asked;
    this.round = 0;
    this.rounds = rows > 10_000 ? 200 : 400;
    try {
      const { places, distances } = await graph(which, rows, neighbours);
      if (mine !== this.asked) return;
      const start = new Float32Array(rows * dimensions);
      for (let i = 0; i < rows; i++) for (let d = 0; d < dimensions; d++) start[i * dimensions + d] = d < width ? axes[i * width + d]! : 0;
      this.worker = new Worker(new URL("./umap.worker.ts", import.meta.url), { type: "module" });
      this.worker.onmessage = ({ data }: MessageEvent<{ round: number; coordinates: Float32Array }>) => {
        (this.round = data.round), (this.coordinates = data.coordinates);
        if (this.round >= this.rounds) this.stop();
      };
      this.worker.onerror = (event) => ((this.failure = event.message), this.stop());
      this.worker.postMessage({ places, distances, start, dimensions, spread, rounds: this.rounds } satisfies Job);
    } catch (error) {
      if (mine === this.asked) (this.failure = textOf(error)), (this.rounds = 0);
    }
  }

  stop(): void {
    this.asked += 1;
    this.worker?.terminate();
    this.worker = undefined;
    if (this.running) this.rounds = this.round;
  }
}
