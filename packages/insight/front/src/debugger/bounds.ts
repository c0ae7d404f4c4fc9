// What the field of a condition's parameter takes; the service refuses the same.
export function boundsOf(name: string): { min?: number; max?: number } {
  if (name.includes("percentage")) return { min: 0, max: 100 };
  return name.startsWith("abs_") || name === "max_min_lt" || name === "rtol" ? { min: 0 } : {};
}
