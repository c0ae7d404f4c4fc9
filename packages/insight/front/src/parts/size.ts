// Bytes as a person reads them: three digits, units of 1000.
export function sizeText(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
  return `${at ? Number(bytes.toPrecision(3)) : bytes} ${units[at]}`;
}
