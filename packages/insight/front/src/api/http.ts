// Requests to the service's own interface; see /api/v1/openapi.json.

export type Value = number | "NaN" | "Infinity" | "-Infinity";
export type Query = Record<string, string | number | string[]>;

export class ServiceError extends Error {
  // isGone: what was asked about is not there, or no longer; code: MindInsight's, of its interface.
  constructor(
    text: string,
    readonly isGone = false,
    readonly code = "",
  ) {
    super(text);
  }
}

// The page lies at <prefix>/, whatever that is.
const root = new URL("./api/v1/", document.baseURI);

export function address(path: string, query: Query = {}): URL {
  const url = new URL(path, root);
  for (const [name, value] of Object.entries(query)) for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  return url;
}

async function answered<T>(answer: Response): Promise<T> {
  const body = await answer.json().catch(() => ({ error: answer.statusText }));
  if (!answer.ok) throw new ServiceError(body.error ?? body.error_msg ?? answer.statusText, answer.status === 404 || body.error_code === "5054B282", body.error_code);
  return body as T;
}

export async function text(path: string, query: Query = {}): Promise<string> {
  const answer = await fetch(address(path, query), { credentials: "same-origin" });
  return answer.ok ? answer.text() : answered<string>(answer);
}

export const get = async <T>(path: string, query: Query = {}): Promise<T> => answered<T>(await fetch(address(path, query), { credentials: "same-origin" }));

export const send = async <T>(method: "POST" | "PUT" | "DELETE", path: string, body: unknown, query: Query = {}): Promise<T> =>
  answered<T>(await fetch(address(path, query), { method, credentials: "same-origin", ...(body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }) }));

// The path of a run's part of the interface.
export const of = (run: string) => `runs/${run.split("/").map(encodeURIComponent).join("/")}`;
