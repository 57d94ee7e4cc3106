export type Path = readonly PropertyKey[]

/** A problem or a warning at a position in a config file. With a problem the relay does not start; with a warning it does. */
export interface Finding {
  readonly severity: 'problem' | 'warning'
  /** The position in the text of the file, in characters. */
  readonly offset: number
  readonly path: Path
  /** A text that completes the sentence "this setting ...". It never repeats a value. */
  readonly message: string
  /** The environment variable that is not set, if that is the problem. */
  readonly unsetVariable?: string
}

/** Writes a path such as `apps[0].username`. It does not repeat an unusual name, because somebody may have written a secret in place of a key. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`
    const name = isPlainName(String(segment)) ? String(segment) : '(unusual name)'
    return text === '' ? name : `${text}.${name}`
  }, '')
}

export function isPlainName(name: string): boolean {
  return /^[A-Za-z][\w-]{0,39}$/.test(name)
}
