// Boxes and masks over an image: what of them is shown, and in which colours. The address keeps what is switched off.
import type { Layer } from "../api/media";
import { listed, route, store, toggled } from "../route.svelte";

// Of the palette of Okabe and Ito (2008), which those tell apart who see colours otherwise, then others.
const COLOURS = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#8dd3c7", "#fb8072", "#b3de69", "#bc80bd", "#ffed6f"] as const;

export interface Over {
  layers: Layer[];
  masks: string[]; // addresses, "" of layers without one
  labels: string[]; // of boxes and of classes, in their order
  colours: Map<string, string>; // by label
}

export const nameOf = (layer: Layer, number: number) => layer.classes[number] ?? String(number);

export function overOf(layers: Layer[], masks: string[]): Over {
  const labels = [...new Set(layers.flatMap((layer) => [...layer.boxes.map((box) => box.label || layer.name), ...Object.values(layer.classes)]))];
  return { layers, masks, labels, colours: new Map(labels.map((label, i) => [label, COLOURS[i % COLOURS.length]!])) };
}

export const colourOf = (over: Over, label: string, number = 0) => over.colours.get(label) ?? COLOURS[number % COLOURS.length]!;

const isOff = (key: string) => listed("off").includes(key);
export const isShown = (kind: "layer" | "label", name: string) => !isOff(`${kind}:${name}`);
export const show = (kind: "layer" | "label", name: string, wanted: boolean) => store("off", toggled(listed("off"), `${kind}:${name}`, !wanted));

const between = (name: string, otherwise: number) => {
  const value = Number(route.query.get(name) ?? otherwise);
  return value >= 0 && value <= 100 ? value : otherwise;
};
export const opacity = () => between("opacity", 50); // percent
export const minimumScore = () => between("score", 0); // percent
