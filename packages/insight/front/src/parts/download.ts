// Files that the browser keeps for the user.
const nameOf = (text: string) => text.replace(/[^\w.-]+/g, "_").slice(0, 80).replace(/^_+|_+$/g, "") || "insight";

export function save(content: Blob, name: string, ending: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = `${nameOf(name)}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
