// What pages show, kept up to date while the user wants that.
import { changes, tags, type TagList } from "./api/runs";
import { settings } from "./settings.svelte";

export const textOf = (error: unknown) => String(error instanceof Error ? error.message : error);

// Calls `refresh` now, when the user asks for it and, while pages follow the runs, when one of `watched` (null: any run) has
// changed, or each time the interval is over that the user has set.
export function follow(watched: () => string[] | null, refresh: () => void, pause = 150): void {
  $effect(() => {
    const mine = watched();
    void settings.asked;
    refresh();
    if (settings.live === "off") return;
    if (settings.interval) {
      const timer = setInterval(refresh, settings.interval * 1000);
      return () => clearInterval(timer);
    }
    let planned = 0;
    const end = changes((changed) => {
      if (!planned && (mine === null || mine.some((run) => changed.includes(run)))) planned = window.setTimeout(() => ((planned = 0), refresh()), pause);
    });
    return () => (end(), clearTimeout(planned));
  });
}

// Which of several answers is the newest: they may come in another order than they were asked for.
export class Turns {
  private asked = 0;
  private shown = 0;

  // Before a question; what it gives tells, when the answer is there, whether none of a later question has been shown.
  take(): () => boolean {
    const mine = ++this.asked;
    return () => mine > this.shown && ((this.shown = mine), true);
  }
}

// What the service answers about the runs that a query wants, kept up to date; asked for again soon while the service reads runs.
export class Followed<T extends { loading: boolean }> {
  value = $state.raw<T>();
  failure = $state("");
  version = $state(0); // rises with each answer
  private readonly turns = new Turns();
  private again = 0;

  constructor(
    private readonly query: () => string,
    private readonly ask: (query: string) => Promise<T>,
    pause: number,
  ) {
    follow(() => (void this.query(), null), () => void this.refresh(), pause);
    $effect(() => () => clearTimeout(this.again));
  }

  refresh = async (): Promise<void> => {
    const asked = this.query();
    const isNewest = this.turns.take();
    try {
      const found = await this.ask(asked);
      if (asked !== this.query() || !isNewest()) return;
      (this.value = found), (this.failure = ""), (this.version += 1);
      clearTimeout(this.again);
      if (found.loading) this.again = window.setTimeout(this.refresh, 500);
    } catch (error) {
      if (asked === this.query() && isNewest()) this.failure = textOf(error);
    }
  };
}

// The tags of a run; `version` rises when the run has new values.
export class Tags {
  list = $state.raw<TagList>();
  failure = $state("");
  version = $state(0);
  private readonly turns = new Turns();

  constructor(private readonly run: () => string) {
    follow(() => [run()], () => void this.refresh());
  }

  private async refresh(): Promise<void> {
    const asked = this.run();
    const isNewest = this.turns.take();
    try {
      const found = await tags(asked);
      if (asked === this.run() && isNewest()) (this.list = found), (this.failure = ""), (this.version += 1);
    } catch (error) {
      if (asked === this.run() && isNewest()) this.failure = textOf(error);
    }
  }
}

// What the service answers to `ask`, which is called anew when what it reads changes; the last answer stays meanwhile.
export class Answer<T> {
  value = $state.raw<T>();
  failure = $state("");

  constructor(ask: () => Promise<T>) {
    $effect(() => {
      let wanted = true;
      ask().then(
        (found) => wanted && ((this.value = found), (this.failure = "")),
        (error) => wanted && (this.failure = textOf(error)),
      );
      return () => void (wanted = false);
    });
  }
}
