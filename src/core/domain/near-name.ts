/** Returns the candidate that a mistyped name most likely means; null: no candidate is close. */
export function suggestName(written: string, candidates: readonly string[]): string | null {
  const folded = fold(written)
  let best: { readonly name: string; readonly distance: number } | null = null
  for (const name of candidates) {
    const distance = editDistance(folded, fold(name))
    if (distance <= Math.min(2, Math.floor(name.length / 3)) && (best === null || distance < best.distance)) best = { name, distance }
  }
  return best?.name ?? null
}

const PREFIX_MIN = 3

/** Like `suggestName`. If no candidate is close, returns the one with the longest common beginning of at least 3 characters; null: none has one. */
export function nearestName(written: string, candidates: readonly string[]): string | null {
  const folded = fold(written)
  const [first] = candidates
    .map((name) => ({ name, shared: sharedPrefix(folded, fold(name)), distance: editDistance(folded, fold(name)) }))
    .filter(({ shared }) => shared >= PREFIX_MIN)
    .toSorted((a, b) => b.shared - a.shared || a.distance - b.distance)
  return suggestName(written, candidates) ?? first?.name ?? null
}

function sharedPrefix(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}

/** Removes differences of case and separators, the most common slips: `base_url` means `baseUrl`. */
function fold(name: string): string {
  return name.slice(0, 100).toLowerCase().replace(/[-_]/g, '')
}

/** Returns the least number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
function editDistance(a: string, b: string): number {
  let older: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (older[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(replaced, swapped, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    older = previous
    previous = row
  }
  return previous[b.length] ?? 0
}
