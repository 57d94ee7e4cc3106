export type Path = readonly PropertyKey[]

/** A problem or a warning at a position in a config file. A warning does not stop the start. */
export interface Finding {
  readonly severity: 'problem' | 'warning'
  /** Position in the text of the file. */
  readonly offset: number
  readonly path: Path
  /** Completes "this setting ..." and never repeats a value. */
  readonly message: string
  /** The environment variable that is not set, if that is the problem. */
  readonly unsetVariable?: string
}

/** A path such as `apps[0].username`. An unusual name is left out: somebody may have written a secret where its key belongs. */
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
