// Pages of other distributions.
import { get } from "./http";

export interface DashboardRow {
  name: string;
  title: string;
}

export interface Context {
  service: string; // address of the service's own interface
  api: string; // address of the dashboard's own routes
  language: string;
  dark: boolean;
}

export interface DashboardModule {
  // Draws into `host`; what it returns is called when the page is left, or drawn anew.
  mount: (host: HTMLElement, context: Context) => void | (() => void) | Promise<void | (() => void)>;
}

export const dashboards = async (language: string) => (await get<{ dashboards: DashboardRow[] }>("dashboards", { language })).dashboards;
export const addressOf = (name: string, path: string) => new URL(`./dashboards/${encodeURIComponent(name)}/${path}`, document.baseURI).href;
