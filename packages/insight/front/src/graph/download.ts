// A drawing as a file that looks the same without this page's styles.
import { save } from "../parts/download";

const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "text-anchor", "paint-order"];

export function download(canvas: SVGSVGElement, width: number, height: number, name: string): void {
  const copy = canvas.cloneNode(true) as SVGSVGElement;
  const [mine, its] = [canvas.querySelectorAll("*"), copy.querySelectorAll("*")];
  mine.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const property of KEPT) {
      const value = style.getPropertyValue(property);
      if (value) its[i]!.setAttribute(property, value);
    }
    for (const unused of ["class", "role", "tabindex"]) its[i]!.removeAttribute(unused);
  });
  copy.querySelector("[data-drawing]")?.removeAttribute("transform");
  copy.removeAttribute("class");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `-10 -10 ${width + 20} ${height + 20}`);
  copy.setAttribute("width", String(width + 20));
  copy.setAttribute("height", String(height + 20));
  save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), name, "svg");
}
