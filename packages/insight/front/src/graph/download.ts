// A drawing as a file that looks the same without this page's styles.
import { save } from "../parts/download";

const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "text-anchor", "paint-order"];

// Mixed colours are told in a form that programs for drawings do not read.
const plain = (value: string) => value.replace(/^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)\)$/, (_, ...parts: string[]) => `rgb(${parts.slice(0, 3).map((part) => Math.round(Number(part) * 255)).join(", ")})`);

export function download(canvas: SVGSVGElement, width: number, height: number, name: string): void {
  const copy = canvas.cloneNode(true) as SVGSVGElement;
  const [mine, its] = [canvas.querySelectorAll("*"), copy.querySelectorAll("*")];
  mine.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const property of KEPT) {
      const value = style.getPropertyValue(property);
      if (value) its[i]!.setAttribute(property, plain(value));
    }
    for (const unused of ["class", "role", "tabindex", "style"]) its[i]!.removeAttribute(unused);
  });
  copy.querySelector("[data-drawing]")?.removeAttribute("transform");
  copy.removeAttribute("class");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `-10 -10 ${width + 20} ${height + 20}`);
  copy.setAttribute("width", String(width + 20));
  copy.setAttribute("height", String(height + 20));
  save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), name, "svg");
}
