/** The URL with only its origin shown, because its path and its parameters may be a credential. */
export function maskPath(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return pathname === '/' && search === '' ? origin : `${origin}/[redacted]`
}
