// Points of a scalar of many runs: asked for in parts, and again for those runs that have new values.
import { curves, type Drawing, type Series } from "../api/scalars";
import { textOf } from "../follow.svelte";

const AT_ONCE = 50; // runs of a request
const SETTLING = 60; // milliseconds until another way of drawing is asked for, while a slider moves

interface Asked {
  runs: string[];
  tags: string[];
  drawing: Drawing | undefined; // undefined: the chart has no size yet
  version: (run: string) => number;
}

export const keyOf = (run: string, tag: string) => JSON.stringify([run, tag]);

export class Loaded {
  private have = $state.raw<Map<string, Series | undefined>>(new Map()); // undefined: the run has no such scalar
  private readonly asking = new Map<string, string>();
  private wanted = "";
  failure = $state("");

  constructor(asked: () => Asked) {
    $effect(() => {
      const { runs, tags, drawing, version } = asked();
      if (!drawing) return;
      const states = new Map(runs.map((run) => [run, version(run)]));
      const wanted = JSON.stringify(drawing);
      const pause = this.wanted && this.wanted !== wanted ? SETTLING : 0;
      const ask = () => {
        this.wanted = wanted;
        for (const tag of tags) {
          const missing = runs.filter((run) => this.asking.get(keyOf(run, tag)) !== `${states.get(run)} ${wanted}`);
          for (let i = 0; i < missing.length; i += AT_ONCE) void this.load(missing.slice(i, i + AT_ONCE), tag, drawing, states);
        }
      };
      if (!pause) return ask();
      const clock = setTimeout(ask, pause);
      return () => clearTimeout(clock);
    });
  }

  of(run: string, tag: string): Series | undefined {
    return this.have.get(keyOf(run, tag));
  }

  // Whether the service has answered for all of them, with the series or that there is none.
  has(runs: string[], tags: string[]): boolean {
    return runs.every((run) => tags.every((tag) => this.have.has(keyOf(run, tag))));
  }

  private async load(runs: string[], tag: string, drawing: Drawing, versions: Map<string, number>): Promise<void> {
    const drawn = this.wanted;
    const stateOf = (run: string) => `${versions.get(run)} ${drawn}`;
    for (const run of runs) this.asking.set(keyOf(run, tag), stateOf(run));
    try {
      const found = new Map((await curves(runs, tag, drawing)).map((series) => [series.run, series]));
      if (drawn !== this.wanted) return;
      const have = new Map(this.have);
      // An answer that was overtaken by one with more points does not replace it.
      for (const run of runs) if (this.asking.get(keyOf(run, tag)) === stateOf(run)) have.set(keyOf(run, tag), found.get(run));
      this.have = have;
      this.failure = "";
    } catch (error) {
      for (const run of runs) if (this.asking.get(keyOf(run, tag)) === stateOf(run)) this.asking.delete(keyOf(run, tag));
      if (drawn === this.wanted) this.failure = textOf(error);
    }
  }
}
