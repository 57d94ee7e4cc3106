/** The pages of the manual that the portal shows: the name of the file in `docs/` without `.md`, and the title. Sorted for reading. */
export const MANUAL = [
  ['operating', 'Operating'],
  ['upgrading', 'Upgrading'],
  ['runbooks', 'Runbooks'],
  ['configuration', 'Configuration'],
  ['carrier', 'The carrier'],
  ['integrating', 'Integrating an app'],
  ['api', 'Using the API'],
  ['feed', 'The feed'],
  ['endpoints', 'Endpoints'],
  ['scaling', 'Scaling'],
  ['domain', 'The domain'],
  ['faults', 'Faults'],
  ['performance', 'Performance'],
  ['architecture', 'Architecture'],
  ['merge-proof', 'Why the merge is right'],
] as const

export type ManualPage = (typeof MANUAL)[number][0]

export function manualPage(name: string): ManualPage | null {
  return MANUAL.find(([page]) => page === name)?.[0] ?? null
}

/** The pictures in these pages, by their names in `docs/`. */
export const PICTURES: readonly string[] = ['polling.svg']
