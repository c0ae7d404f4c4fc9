// A duration as a person reads it: three digits.
export function durationText(nanoseconds: number): string {
  const units: [string, number][] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]];
  const [unit, size] = units.find(([, size]) => nanoseconds >= size) ?? ["ns", 1];
  return `${Number((nanoseconds / size).toPrecision(3))} ${unit}`;
}
