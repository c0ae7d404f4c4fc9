// Colours of points by a column of labels: shades for numbers, one each for few texts.

export interface Colouring {
  kind: "none" | "number" | "text";
  of: (place: number) => string;
  legend: { text: string; colour: string; count: number }[];
}

const most = 24; // texts with a colour of their own

export function colouring(values: string[] | undefined, dark: boolean, plain: string): Colouring {
  if (!values) return { kind: "none", of: () => plain, legend: [] };
  const numbers = values.map((text) => (text.trim() === "" ? NaN : Number(text)));
  const counts = new Map<string, number>();
  for (const text of values) counts.set(text, (counts.get(text) ?? 0) + 1);
  const light = dark ? 62 : 42;
  if (counts.size > most && numbers.every((n) => Number.isFinite(n))) {
    let [low, high] = [Infinity, -Infinity];
    for (const n of numbers) (low = Math.min(low, n)), (high = Math.max(high, n));
    const shades = 24;
    const colour = (at: number) => `hsl(${Math.round(220 - 200 * at)} 70% ${light}%)`;
    const at = (n: number) => Math.round(((n - low) / (high - low || 1)) * shades) / shades;
    return { kind: "number", of: (i) => colour(at(numbers[i]!)), legend: [0, 0.5, 1].map((p) => ({ text: String(Number((low + p * (high - low)).toPrecision(4))), colour: colour(p), count: 0 })) };
  }
  const ranked = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, most);
  // Hues as far apart as can be for any number of texts, in two strengths.
  const colours = new Map(ranked.map(([text], i) => [text, `hsl(${Math.round((i * 137.5) % 360)} ${i % 2 ? 45 : 75}% ${light + (i % 3) * 6}%)`]));
  const rest = dark ? "#7c8a83" : "#98a39d";
  return { kind: "text", of: (i) => colours.get(values[i]!) ?? rest, legend: ranked.map(([text, count]) => ({ text, colour: colours.get(text)!, count })) };
}
