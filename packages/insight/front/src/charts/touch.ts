// Fingers on a chart: one moves the pointer, or what is seen when it is zoomed; two zoom. A double tap or click steps back.
import type { Range } from "../api/scalars";

export interface Touched {
  seen: () => Range; // the part of the axis that is shown
  isPart: () => boolean; // whether that is not all of it
  all: () => Range | undefined; // undefined: not known
  isLog: boolean;
  preview: (range: Range | undefined) => void; // while fingers move
  zoom: (range: Range) => void;
  restore: () => void;
  back: () => void;
  point: (left: number, top: number) => void;
}

const STILL = 8; // pixels that a finger moves in a tap

// Listens on the area of a chart, until the result is called.
export function touch(area: HTMLElement, chart: Touched): () => void {
  const fingers = new Map<number, { from: number; now: number }>();
  let begun: Range | undefined; // what was shown when the fingers came
  let found: Range | undefined;
  let moved = false;

  const place = (event: PointerEvent) => event.clientX - area.getBoundingClientRect().left;
  function begin(): void {
    begun = chart.seen();
    for (const finger of fingers.values()) finger.from = finger.now;
  }

  // The part that lies under the area when each finger holds what it touched.
  function held(width: number): Range {
    const [a, b] = [...fingers.values()] as [{ from: number; now: number }, { from: number; now: number } | undefined];
    const apart = (x: number) => (Math.abs(x) < 12 ? 12 * (Math.sign(x) || 1) : x);
    const ratio = b ? apart(b.from - a.from) / apart(b.now - a.now) : 1;
    const at = (x: number) => (a.from + (x - a.now) * Math.abs(ratio)) / width;
    const [low, high] = chart.isLog ? [Math.log10(begun!.from), Math.log10(begun!.to)] : [begun!.from, begun!.to];
    const value = (share: number) => (chart.isLog ? 10 ** (low + (high - low) * share) : low + (high - low) * share);
    return { from: value(at(0)), to: value(at(width)) };
  }

  function down(event: PointerEvent): void {
    if (event.pointerType !== "touch") return;
    if (!fingers.size) moved = false;
    fingers.set(event.pointerId, { from: place(event), now: place(event) });
    area.setPointerCapture(event.pointerId);
    begin();
  }

  function move(event: PointerEvent): void {
    const finger = fingers.get(event.pointerId);
    if (!finger || !begun) return;
    finger.now = place(event);
    moved ||= Math.abs(finger.now - finger.from) > STILL;
    if (fingers.size === 1 && !chart.isPart()) return chart.point(finger.now, event.clientY - area.getBoundingClientRect().top);
    if (!moved || fingers.size > 2) return;
    found = held(area.clientWidth);
    chart.preview(found);
  }

  function up(event: PointerEvent): void {
    if (!fingers.delete(event.pointerId)) return;
    if (fingers.size) return begin(); // the other finger goes on from here
    const range = event.type === "pointercancel" ? undefined : found; // cancelled: the page is scrolled
    found = begun = undefined;
    chart.preview(undefined);
    if (!range) return;
    const all = chart.all() ?? { from: -Infinity, to: Infinity };
    if (range.from <= all.from && range.to >= all.to) chart.restore();
    else if (range.from < all.to && range.to > all.from) chart.zoom({ from: Math.max(range.from, all.from), to: Math.min(range.to, all.to) });
  }

  // Up and down the page is scrolled; all else is ours.
  area.style.touchAction = "pan-y";
  const listeners = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, dblclick: () => chart.back() } as const;
  for (const [name, listener] of Object.entries(listeners)) area.addEventListener(name, listener as EventListener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) area.removeEventListener(name, listener as EventListener);
  };
}
