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

// The tags of a run; `version` rises when the run has new values.
export class Tags {
  list = $state.raw<TagList>();
  failure = $state("");
  version = $state(0);

  constructor(private readonly run: () => string) {
    follow(() => [run()], () => void this.refresh());
  }

  private async refresh(): Promise<void> {
    const asked = this.run();
    try {
      const found = await tags(asked);
      if (asked === this.run()) (this.list = found), (this.failure = ""), (this.version += 1);
    } catch (error) {
      if (asked === this.run()) this.failure = textOf(error);
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
