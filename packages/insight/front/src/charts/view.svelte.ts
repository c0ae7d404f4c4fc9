// What of a chart is in the address: its zooms, its logarithmic axis, whether it fills the window, whether it is pinned.
import type { Range } from "../api/scalars";
import { listed, route, store, stored, toggled } from "../route.svelte";

const isRange = (one: unknown): one is [number, number] => Array.isArray(one) && one.length === 2 && one.every(Number.isFinite) && one[0] < one[1];

export class View {
  constructor(private readonly name: () => string) {}

  private get all(): Record<string, unknown> {
    return stored<Record<string, unknown>>("zoom", {});
  }

  // From the first to the last one, in what the axis shows.
  get zooms(): Range[] {
    const own = Object.hasOwn(this.all, this.name()) ? this.all[this.name()] : [];
    return Array.isArray(own) ? own.filter(isRange).map(([from, to]) => ({ from, to })) : [];
  }

  private keep(zooms: Range[]): void {
    const { [this.name()]: _, ...others } = this.all;
    store("zoom", zooms.length ? { ...others, [this.name()]: zooms.map(({ from, to }) => [from, to]) } : others);
  }

  zoom(range: Range): void {
    const short = (value: number) => Number(value.toPrecision(12));
    this.keep([...this.zooms, { from: short(range.from), to: short(range.to) }]);
  }
  stepBack = (): void => this.keep(this.zooms.slice(0, -1));
  restore = (): void => this.keep([]);

  get log(): boolean {
    return listed("log").includes(this.name());
  }
  toggleLog = (): void => store("log", toggled(listed("log"), this.name()));

  get full(): boolean {
    return route.query.get("full") === this.name();
  }
  set full(wanted: boolean) {
    route.set({ full: wanted ? this.name() : "" });
  }

  get pinned(): boolean {
    return listed("pins").includes(this.name());
  }
  togglePin = (): void => store("pins", toggled(listed("pins"), this.name()));
}

// Charts that are pinned come first, in the order in which they were.
export function pinnedFirst(names: string[]): string[] {
  const pins = listed("pins").filter((name) => names.includes(name));
  return [...pins, ...names.filter((name) => !pins.includes(name))];
}
