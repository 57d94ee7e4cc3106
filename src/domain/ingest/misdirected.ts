/**
 * Requests that were posted to a wrong path of the public listener, and were answered with 404. If they are signed, the carrier probably
 * posts its pushes to a wrong address. But anybody can post such requests. Times are epoch milliseconds.
 */
export interface MisdirectedPath {
  /** The path without its query, shortened, in printable ASCII. */
  readonly path: string
  /** Whether the last request had the signature header of a push. The signature was not checked. */
  readonly isSigned: boolean
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

/** The most paths that are kept. Strangers can post to any number of paths. */
const PATHS_MAX = 10
const PATH_CHARS_MAX = 100

/** Adds a request to the known paths. The path that was requested last comes first. */
export function addMisdirected(
  known: readonly MisdirectedPath[],
  { target, isSigned }: { readonly target: string; readonly isSigned: boolean },
  atMs: number,
): readonly MisdirectedPath[] {
  const path = shownPath(target)
  const same = known.find((one) => one.path === path)
  const added = { path, isSigned, count: (same?.count ?? 0) + 1, firstAtMs: same?.firstAtMs ?? atMs, lastAtMs: atMs }
  const others = known.filter((one) => one !== same)
  return [added, ...(others.length < PATHS_MAX ? others : withoutLeast(others))]
}

/** Drops the least useful path. Unsigned ones go first, then those with fewer requests, then those that were requested longer ago. */
function withoutLeast(paths: readonly MisdirectedPath[]): readonly MisdirectedPath[] {
  const least = paths.reduce((a, b) => (isLess(b, a) ? b : a))
  return paths.filter((one) => one !== least)
}

function isLess(a: MisdirectedPath, b: MisdirectedPath): boolean {
  if (a.isSigned !== b.isSigned) return b.isSigned
  return a.count === b.count ? a.lastAtMs < b.lastAtMs : a.count < b.count
}

/** Returns a path that is safe to show. The query is left out, because it may contain secrets. */
function shownPath(target: string): string {
  const [path = ''] = target.slice(0, PATH_CHARS_MAX + 1).split(/[?#]/, 1)
  const clean = path.replaceAll(/[^\x21-\x7e]/g, '?')
  return clean.length > PATH_CHARS_MAX ? `${clean.slice(0, PATH_CHARS_MAX - 3)}...` : clean
}
