import type { NamedKey } from './signature.ts'

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

/** A push that was refused because its signature does not match. */
export interface RefusedPush {
  /** Null: it was not read. */
  readonly body: Uint8Array | null
  /** All values of the signature header. */
  readonly signatures: readonly string[]
  readonly address: string
  /** Returns the first value of a header; null: the request lacks the header. */
  readonly header: (name: string) => string | null
}

/** A refused push that was examined. The wing that examines adds to this interface what it finds. */
export interface Refusal {
  readonly atMs: number
  /** The IP address of the sender. */
  readonly address: string
}

/** Examines some of the refused pushes. */
export interface RefusalSamples {
  /** Whether `take` would examine a push now. */
  isDue(): boolean
  /** Explains a push if `isDue` returns true; otherwise does nothing. Copies the body, so the caller may release it at once. */
  take(refused: RefusedPush): void
  /** Uses other keys from now on. Explanations still try the keys that were removed last. */
  replaceKeys(keys: RefusalKeys): void
}

/** The keys that may have signed a refused push: those for pushes, and those for other purposes. */
export interface RefusalKeys {
  readonly push: readonly NamedKey[]
  readonly others: readonly NamedKey[]
}
