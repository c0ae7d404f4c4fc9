// Widths of a table's columns, drawn by hand or with the arrow keys and kept by the browser under the table's name.
import type { Attachment } from "svelte/attachments";
import { keep, kept, settings } from "../settings.svelte";

const LEAST = 36; // pixels
const STEP = 16; // of an arrow key
const WIDE = "(min-width: 961px)"; // narrower windows arrange the columns themselves

function widthsOf(text: string | null): Record<string, number> {
  try {
    const found: unknown = JSON.parse(text ?? "{}");
    return Object.fromEntries(Object.entries(found instanceof Object ? found : {}).filter(([, width]) => typeof width === "number" && width >= LEAST && width <= 10_000));
  } catch {
    return {};
  }
}

// A column is known by the `data-column` of its head, or else by its place.
export const drawnWidths = (name: string): Attachment<HTMLTableElement> => {
  return (table) => {
    const { columnWidth, columnHint } = settings.t;
    const widths = widthsOf(kept(`columns.${name}`));
    const wide = matchMedia(WIDE);
    const heads = () => [...(table.tHead?.rows[0]?.cells ?? [])];
    const keyOf = (head: HTMLTableCellElement) => head.dataset["column"] ?? String(head.cellIndex);
    const gripOf = (head: HTMLTableCellElement) => head.querySelector<HTMLElement>(":scope > .grip");

    function apply(): void {
      const all = heads();
      for (const head of all) {
        if (!gripOf(head)) head.append(grip(head));
        head.style.width = "";
      }
      table.style.width = "";
      const isDrawn = wide.matches && all.some((head) => keyOf(head) in widths);
      table.classList.toggle("drawn", false);
      const natural = all.map((head) => head.offsetWidth); // of those whose width nobody has drawn
      if (isDrawn) {
        const chosen = all.map((head, i) => widths[keyOf(head)] ?? natural[i]!);
        all.forEach((head, i) => (head.style.width = `${chosen[i]}px`));
        table.style.width = `${chosen.reduce((sum, one) => sum + one, 0)}px`;
        table.classList.toggle("drawn", true);
      }
      for (const head of all) gripOf(head)?.setAttribute("aria-valuenow", String(head.offsetWidth));
    }

    function set(key: string, width: number | undefined): void {
      if (width === undefined) delete widths[key];
      else widths[key] = Math.max(LEAST, Math.round(width));
      apply();
    }
    const store = () => keep(`columns.${name}`, JSON.stringify(widths));

    function grip(head: HTMLTableCellElement): HTMLElement {
      const made = document.createElement("span");
      const text = (head.querySelector("button") ?? head).textContent ?? "";
      const attributes = { role: "separator", "aria-orientation": "vertical", "aria-valuemin": String(LEAST), "aria-label": columnWidth(text.replace(/[↑↓]/g, "").trim()), title: columnHint, tabindex: "0", "data-testid": "column-grip", class: "grip" };
      for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
      let from: { x: number; width: number } | undefined;
      made.onpointerdown = (event) => {
        if (event.button !== 0) return;
        event.preventDefault();
        made.setPointerCapture(event.pointerId);
        made.focus();
        from = { x: event.clientX, width: head.offsetWidth };
      };
      made.onpointermove = (event) => from && set(keyOf(head), from.width + event.clientX - from.x);
      made.onpointerup = made.onpointercancel = () => from && ((from = undefined), store());
      made.ondblclick = () => (set(keyOf(head), undefined), store());
      made.onkeydown = (event) => {
        const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
        if (step) set(keyOf(head), head.offsetWidth + step);
        else if (event.key === "Delete" || event.key === "Backspace") set(keyOf(head), undefined);
        else return;
        event.preventDefault();
        store();
      };
      return made;
    }

    apply();
    const watch = new MutationObserver(apply); // other columns
    if (table.tHead?.rows[0]) watch.observe(table.tHead.rows[0], { childList: true });
    wide.addEventListener("change", apply);
    return () => {
      watch.disconnect();
      wide.removeEventListener("change", apply);
      for (const head of heads()) gripOf(head)?.remove();
    };
  };
};
