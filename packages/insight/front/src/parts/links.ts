// Rows of links that are scrolled where they have no room.

// The link of the page that is shown stands in the middle, as far as the row can be scrolled; the window stays where it is.
export function showCurrent(row: HTMLElement | undefined): void {
  const link = row?.querySelector<HTMLElement>("[aria-current]");
  if (!row || !link) return;
  const [at, its] = [row.getBoundingClientRect(), link.getBoundingClientRect()];
  row.scrollLeft += its.left + its.width / 2 - at.left - at.width / 2;
}
