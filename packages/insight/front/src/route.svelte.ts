// The page and its state, in the part of the address behind '#': #/path?name=value.

class Route {
  path = $state("");
  query = $state(new URLSearchParams());

  constructor() {
    addEventListener("hashchange", () => this.read());
    this.read();
  }

  private read(): void {
    const [path, query] = location.hash.slice(1).split("?", 2);
    this.path = path || "/summary-manage";
    this.query = new URLSearchParams(query ?? "");
  }

  // Changes the query in place, so that the address can be shared; empty values leave it.
  set(changes: Record<string, string>): void {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    if (query.toString() === this.query.toString()) return;
    this.query = query;
    history.replaceState(null, "", link(this.path, Object.fromEntries(query)));
  }
}

export function link(path: string, query: Record<string, string> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

export const route = new Route();

// Which of `values` the address has under `name`; the first one if it has none of them.
export const choice = <T extends string>(name: string, values: readonly [T, ...T[]]): T => values.find((one) => one === route.query.get(name)) ?? values[0];

// What the address has under `name` as JSON, if it is of the kind of `otherwise`, a list or an object.
export function stored<T extends object>(name: string, otherwise: T): T {
  try {
    const found: unknown = JSON.parse(route.query.get(name) ?? "");
    return found instanceof Object && Array.isArray(found) === Array.isArray(otherwise) ? (found as T) : otherwise;
  } catch {
    return otherwise;
  }
}

// Keeps it there; what is empty leaves the address.
export const store = (name: string, value: object) => route.set({ [name]: Object.keys(value).length ? JSON.stringify(value) : "" });

// A list of texts in the address; one that was typed wrong is empty.
export const listed = (name: string): string[] => stored<unknown[]>(name, []).filter((one): one is string => typeof one === "string");

// The same list with a text in it, or without.
export const toggled = (list: string[], text: string, wanted = !list.includes(text)) => (wanted ? [...new Set([...list, text])] : list.filter((one) => one !== text));

const NONE = "*"; // hides all tags but those that `show` has

// Which tags a page shows: all but those that the address hides, or those alone that it shows.
export function shownTags(): (tag: string) => boolean {
  const isNone = route.query.get("hide") === NONE;
  const named = new Set(listed(isNone ? "show" : "hide"));
  return (tag) => named.has(tag) === isNone;
}

export const showAllTags = (wanted: boolean) => route.set({ hide: wanted ? "" : NONE, show: "" });

export function showTag(tag: string, wanted: boolean): void {
  const isNone = route.query.get("hide") === NONE;
  const name = isNone ? "show" : "hide";
  store(name, toggled(listed(name), tag, wanted === isNone));
}

// A run's id as MindInsight has it in addresses: ./a/b; ./ is the base folder, which the interface calls @.
export const idOf = (run: string) => `./${run === "@" ? "" : run.startsWith("@@") ? run.slice(1) : run}`;
export const runOf = (id: string) => {
  const name = id.replace(/^\.\//, "");
  return name === "" ? "@" : name.startsWith("@") ? `@${name}` : name;
};
