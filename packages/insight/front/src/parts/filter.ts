// Which names a filter wants: those that hold its text, or match its /pattern/; all of them while a pattern is half typed.
export function matcher(text: string): (name: string) => boolean {
  const pattern = /^\/(.+)\/$/.exec(text)?.[1];
  if (pattern === undefined) return (name) => name.toLowerCase().includes(text.toLowerCase());
  try {
    const expression = new RegExp(pattern);
    return (name) => expression.test(name);
  } catch {
    return () => true;
  }
}

// A name as it is read: one without a letter stands between quotes.
export const readable = (name: string) => (name.trim() ? name : JSON.stringify(name));
