// A chart as a file: SVG, and PNG of the same drawing.
import { save } from "../parts/download";
import { outline, placing, trace, type Curve } from "./curves";

interface Tick {
  at: number;
  text: string;
}

// What a chart shows.
export interface Picture {
  readonly curves: Curve[];
  readonly alarm: ((value: number) => boolean) | undefined;
  readonly shown: { x: [number, number]; left: [number, number]; right: [number, number] };
  logs: { x: boolean; left: boolean; right: boolean };
  ticks: { x: Tick[]; left: Tick[]; right: Tick[] };
  colours: { line: string; quiet: string; alarm: string; ink: string; surface: string };
  width: number;
  height: number;
}

const MOST_NAMES = 12; // in the legend
const ROW = 16; // pixels
const escaped = (text: string) => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);

export function svgOf(picture: Picture, title: string): string {
  const { curves, alarm, shown, logs, ticks, colours } = picture;
  const named = curves.length > 1 ? curves.slice(0, MOST_NAMES) : [];
  const hasRight = curves.some((curve) => curve.side === "right");
  const [left, top, right, bottom] = [66, 30, picture.width - (hasRight ? 66 : 14), 30 + picture.height - 40];
  const height = bottom + 30 + named.length * ROW;
  const px = placing(shown.x[0], shown.x[1], logs.x, left, right);
  const py = { left: placing(...shown.left, logs.left, bottom, top), right: placing(...shown.right, logs.right, bottom, top) };
  const out: string[] = [];
  const text = (x: number, y: number, anchor: string, colour: string, words: string) => out.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour}">${escaped(words)}</text>`);
  const line = (d: string, colour: string, width: number, alpha = 1) => d && out.push(`<path d="${d}" fill="none" stroke="${escaped(colour)}" stroke-width="${width}" stroke-opacity="${alpha}" stroke-linejoin="round"/>`);
  const path = (draw: (pen: Pick<CanvasPath, "moveTo" | "lineTo">) => void): string => {
    let d = "";
    draw({ moveTo: (x, y) => void (d += `M${x.toFixed(1)} ${y.toFixed(1)}`), lineTo: (x, y) => void (d += `L${x.toFixed(1)} ${y.toFixed(1)}`) });
    return d;
  };
  for (const { at, text: words } of ticks.x) line(`M${px(at).toFixed(1)} ${top}V${bottom}`, colours.line, 1), text(px(at), bottom + 16, "middle", colours.quiet, words);
  for (const { at, text: words } of ticks.left) line(`M${left} ${py.left(at).toFixed(1)}H${right}`, colours.line, 1), text(left - 6, py.left(at) + 4, "end", colours.quiet, words);
  if (hasRight) for (const { at, text: words } of ticks.right) text(right + 6, py.right(at) + 4, "start", colours.quiet, words);
  out.push('<g clip-path="url(#plot)">');
  for (const curve of curves) {
    const y = py[curve.side];
    if (curve.band) out.push(`<path d="${path((pen) => outline(pen, curve, px, y))}Z" fill="${escaped(curve.colour)}" fill-opacity="0.16"/>`);
    if (curve.faint) line(path((pen) => trace(pen, curve.x, curve.faint!, px, y)), curve.colour, 1, 0.33);
    line(path((pen) => trace(pen, curve.x, curve.y, px, y)), curve.colour, 1.7);
    curve.series?.values.forEach((value, i) => {
      if (typeof value === "number" && alarm?.(value)) out.push(`<circle cx="${px(curve.x[i]!).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3" fill="${colours.alarm}"/>`);
    });
  }
  out.push("</g>");
  text(left, 18, "start", colours.ink, title);
  named.forEach((curve, i) => {
    const y = bottom + 34 + i * ROW;
    line(`M${left} ${y - 4}H${left + 18}`, curve.colour, 3);
    text(left + 26, y, "start", colours.ink, i === MOST_NAMES - 1 && curves.length > MOST_NAMES ? `${curve.name} … (${curves.length})` : curve.name);
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${picture.width}" height="${height}" viewBox="0 0 ${picture.width} ${height}" font-family="system-ui, sans-serif" font-size="11">` +
    `<defs><clipPath id="plot"><rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}"/></clipPath></defs>` +
    `<rect width="100%" height="100%" fill="${colours.surface}"/>${out.join("")}</svg>`
  );
}

export const saveSvg = (picture: Picture, title: string): void => save(new Blob([svgOf(picture, title)], { type: "image/svg+xml" }), title, "svg");

// At twice the size of the screen's pixels.
export async function savePng(picture: Picture, title: string): Promise<void> {
  const address = URL.createObjectURL(new Blob([svgOf(picture, title)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const content = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (content) save(content, title, "png");
  } finally {
    URL.revokeObjectURL(address);
  }
}
