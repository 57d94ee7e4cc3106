/** Hides all of a URL but its origin, because the path and the parameters may contain a credential. */
export function maskPath(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return pathname === '/' && search === '' ? origin : `${origin}/[redacted]`
}
