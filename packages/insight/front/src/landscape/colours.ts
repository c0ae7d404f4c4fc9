// Scales of colours from the lowest loss to the greatest.
export const palettes = ["valley", "heat", "parted", "grey"] as const;
export type Palette = (typeof palettes)[number];
export type Colour = [number, number, number];

// Equal steps are about equally different, and all but the third grow lighter, so that they can be told without colours.
const stops: Record<Palette, Colour[]> = {
  valley: [[38, 34, 98], [34, 84, 140], [24, 134, 138], [66, 178, 104], [168, 214, 62], [250, 232, 80]],
  heat: [[24, 16, 48], [98, 24, 110], [182, 44, 82], [236, 104, 40], [250, 188, 60], [252, 246, 190]],
  parted: [[44, 84, 168], [120, 164, 214], [232, 234, 236], [226, 142, 116], [166, 32, 50]],
  grey: [[40, 44, 42], [232, 236, 234]],
};

export function colourOf(palette: Palette, height: number): Colour {
  const list = stops[palette];
  const at = Math.min(1, Math.max(0, height)) * (list.length - 1);
  const first = Math.min(list.length - 2, Math.floor(at));
  const [a, b] = [list[first]!, list[first + 1]!];
  return a.map((value, i) => Math.round(value + (b[i]! - value) * (at - first))) as Colour;
}

export const css = ([r, g, b]: Colour) => `rgb(${r}, ${g}, ${b})`;
