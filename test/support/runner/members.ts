/** Reads a member of a value that may have none. */
export function memberOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
}

export function listOf(body: unknown, name: string): readonly unknown[] {
  const value = memberOf(body, name)
  return Array.isArray(value) ? value : []
}

export function textOf(body: unknown, name: string): string | null {
  const value = memberOf(body, name)
  return typeof value === 'string' ? value : null
}
