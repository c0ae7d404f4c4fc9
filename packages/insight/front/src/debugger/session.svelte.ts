// A session as the page has it: where it is, its watchpoints, what hits them. Other pages may move it, too.
import { all, hits, poll, steps, type Device, type HitPage, type Metadata, type WatchPoint } from "../api/debugger";
import { ServiceError } from "../api/http";
import { textOf, Turns } from "../follow.svelte";
import { settings } from "../settings.svelte";

export const MOST_HITS = 100;
const AGAIN_MS = 2000; // after a request that failed

export interface StepRow {
  step: number;
  graphs: string[];
}

export class Session {
  metadata = $state.raw<Metadata>();
  devices = $state.raw<Device[]>([]);
  graphs = $state.raw<string[]>([]);
  watches = $state.raw<WatchPoint[]>([]);
  hits = $state.raw<HitPage>();
  steps = $state.raw<StepRow[]>([]);
  failure = $state("");
  version = $state(0); // rises when something of it has changed
  private isOver = false; // there is no such session
  private readonly turns = new Turns();

  // moved: called when the step has changed by what another page, or the training, did. lost: when there is no such session,
  // as after a restart of the service.
  constructor(
    readonly id: () => string,
    readonly rank: () => number,
    private readonly moved: (step: number) => void,
    private readonly lost: () => void = () => undefined,
  ) {
    $effect(() => {
      const [mine, its] = [this.id(), this.rank()];
      const isLive = settings.live === "on";
      this.isOver = false;
      let wanted = true;
      let wait = 0;
      let failed = false;
      const listen = async (): Promise<void> => {
        try {
          const { metadata } = await poll(mine, this.metadata?.pos ?? "");
          if (wanted && (failed || metadata.pos !== this.metadata?.pos)) failed = !(await this.load(mine, its));
          goOn();
        } catch {
          failed = true;
          if (wanted) await this.load(mine, its); // tells what is wrong
          goOn();
        }
      };
      // What failed may be there soon, as a rank that has yet to connect.
      const goOn = (): void => {
        if (wanted && failed) wait = window.setTimeout(() => void listen(), AGAIN_MS);
        else if (wanted) void listen();
      };
      void this.load(mine, its).then((found) => ((failed = !found), isLive && !this.isOver && goOn()));
      return () => ((wanted = false), clearTimeout(wait));
    });
  }

  refresh = () => this.load(this.id(), this.rank());

  // Does something to the session and reads it anew; what is refused stands in `failure`.
  async act(what: Promise<unknown>): Promise<boolean> {
    let done = true;
    try {
      await what;
      this.failure = "";
    } catch (error) {
      this.failure = textOf(error);
      done = false;
    }
    const failure = this.failure;
    await this.refresh();
    this.failure ||= failure;
    return done;
  }

  private async load(id: string, rank: number): Promise<boolean> {
    const isNewest = this.turns.take();
    try {
      const [told, found, recorded] = await Promise.all([all(id, rank), hits(id, rank, MOST_HITS, 0), steps(id, rank)]);
      if (id !== this.id() || rank !== this.rank()) return false;
      if (!isNewest()) return true; // what came later is shown
      const before = this.metadata?.step;
      this.metadata = told.metadata;
      this.devices = told.devices;
      this.graphs = told.graph.graph_names;
      this.watches = told.watch_points;
      this.hits = found;
      this.steps = recorded;
      if (before !== undefined && before !== told.metadata.step) this.moved(told.metadata.step);
      this.failure = "";
      this.version += 1;
      return true;
    } catch (error) {
      if (id === this.id() && rank === this.rank() && isNewest()) {
        this.failure = textOf(error);
        this.isOver = error instanceof ServiceError && error.isGone;
        if (this.isOver) this.lost();
      }
      return false;
    }
  }
}
