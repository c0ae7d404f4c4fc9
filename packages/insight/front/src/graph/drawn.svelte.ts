// A graph that is drawn: what is asked for, laid out and shown, and what a hand does with it. The address has the scopes that are open.
import type { GraphNode, NodeInfo, View } from "../api/graphs";
import { textOf } from "../follow.svelte";
import { listed, route } from "../route.svelte";
import { Camera } from "./camera.svelte";
import { arrange, type Box, type Drawing } from "./layout";

export const canOpen = (node: GraphNode) => ["scope", "aggregation", "part"].includes(node.kind);

export class Drawn {
  readonly camera = new Camera();
  drawing = $state.raw<Drawing>();
  seen = $state.raw<View>();
  failure = $state("");
  working = $state(false);
  private asked = 0;
  private drawnOf = ""; // the graph that is drawn
  private goal = ""; // the node to be centred when it is drawn
  private touched = ""; // the node under the hand

  // keeps: whether another drawing of the same graph leaves what is seen as it was, also when nothing is under the hand.
  constructor(private readonly keeps: boolean) {}

  box(name: string): Box | undefined {
    return this.drawing?.boxes.find((one) => one.node.name === name);
  }

  // key: of the graph, with all but its open scopes.
  async draw(key: string, ask: () => Promise<View>, tensors: (n: number) => string): Promise<void> {
    const mine = ++this.asked;
    this.working = true;
    try {
      const seen = await ask();
      const made = await arrange(seen, tensors);
      if (mine !== this.asked) return;
      const isSame = key === this.drawnOf && !this.goal;
      this.drawnOf = key;
      // Nothing is seen of a graph that lies in one scope: it is opened from the start.
      const scopes = seen.nodes.filter(canOpen);
      if (!isSame && !this.goal && !route.query.has("open") && scopes.length === 1) {
        route.set({ open: JSON.stringify([scopes[0]!.name]) });
        return;
      }
      // What was under the hand stays there.
      const was = isSame ? this.box(this.touched) : undefined;
      this.drawing = made;
      this.seen = seen;
      this.failure = "";
      const now = was && this.box(this.touched);
      this.camera.show(made, Boolean(now) || (isSame && this.keeps));
      if (was && now) this.camera.move((was.x + was.width / 2 - now.x - now.width / 2) * this.camera.scale, (was.y - now.y) * this.camera.scale);
      const wanted = this.goal ? this.box(this.goal) : undefined;
      if (wanted) this.camera.fit(wanted);
      this.goal = "";
    } catch (error) {
      if (mine === this.asked) this.failure = textOf(error);
    } finally {
      if (mine === this.asked) this.working = false;
    }
  }

  touch(name: string): void {
    this.touched = name;
  }

  isTouched = (name: string) => name === this.touched;

  toggle(name: string, isOpen: boolean): void {
    this.touched = name;
    const inside = (one: string) => one === name || one.startsWith(`${name}/`);
    const opened = listed("open");
    const next = isOpen ? opened.filter((one) => !inside(one)) : [...opened, name];
    route.set({ open: next.length ? JSON.stringify(next) : "" });
  }

  // Shows a node, opens the scopes around it, and sets `more` in the address.
  go(info: NodeInfo, more: Record<string, string> = {}): void {
    const box = this.box(info.name);
    if (box) this.camera.fit(box);
    else this.goal = info.name;
    const next = [...new Set([...listed("open"), ...info.path])];
    route.set({ ...more, open: next.length ? JSON.stringify(next) : "" });
  }
}
