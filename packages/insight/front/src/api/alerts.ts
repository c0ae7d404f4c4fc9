// Rules that the service keeps, and the points that meet them.
import { get, send, type Value } from "./http";

export interface Hit {
  run: string;
  tag: string;
  points: number;
  first_step: number;
  first_time: number;
  first_value: Value;
  last_step: number;
}

export interface Alert {
  id: string;
  rule: string;
  runs: string;
  hits: Hit[];
}

export const alerts = () => get<{ firing: number; alerts: Alert[] }>("alerts");
export const addAlert = (rule: string, runs: string) => send<{ id: string }>("PUT", "alerts", { rule, runs });
export const removeAlert = (id: string) => send<{ removed: string }>("DELETE", `alerts/${encodeURIComponent(id)}`, undefined);
