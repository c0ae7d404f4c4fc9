// How landscapes are drawn, kept in the address.
import { choice, route } from "../route.svelte";
import { palettes } from "./colours";
import { still, type Turn } from "./surface";

export const views = ["isolines", "relief", "surface"] as const;
export type View = (typeof views)[number];
export const LINES = { least: 3, most: 60, usual: 16 };

export class Choices {
  view = $derived(choice("view", views));
  palette = $derived(choice("colours", palettes));
  lines = $derived(Math.min(LINES.most, Math.max(LINES.least, Math.round(Number(route.query.get("lines"))) || LINES.usual)));
  logarithmic = $derived(route.query.get("heights") === "log");
  path = $derived(route.query.get("path") !== "off");
  turn = $derived(turnOf(route.query.get("turn") ?? ""));
}

function turnOf(text: string): Turn {
  const [yaw, pitch, zoom] = text.split(",").map(Number);
  if (![yaw, pitch, zoom].every(Number.isFinite)) return still;
  return { yaw: yaw!, pitch: Math.min(Math.PI / 2, Math.max(0, pitch!)), zoom: Math.min(8, Math.max(0.3, zoom!)) };
}

export function setTurn(turn: Turn): void {
  const same = turn.yaw === still.yaw && turn.pitch === still.pitch && turn.zoom === still.zoom;
  route.set({ turn: same ? "" : [turn.yaw, turn.pitch, turn.zoom].map((n) => n.toFixed(3)).join(",") });
}
