import { type HouseFigures, longFunctions, shareOfLong } from './measure-house.ts'

/** How large the house may grow. There is room below each limit: one that binds shapes the code instead of showing its shape. */
export const HOUSE_LIMITS = {
  functionLines: 90,
  /** Of functions, those over 60 lines. */
  longFunctionShare: 0.008,
  fileLines: 330,
  portsLines: 190,
  sharedPortsLines: 70,
  appLines: 130,
  /** Imports between the flows of two capabilities: those of `CROSSINGS`. */
  crossings: 2,
  pushPathFiles: 34,
  readmeWords: 1500,
}

/** The imports between the flows of two capabilities, each with its reason. */
export const CROSSINGS = [
  // A push from the inbox is recorded as any push is.
  'admin/reprocess.tx.ts -> history/record.tx.ts',
]

/** A figure of the house, with its limit. */
export interface Held {
  readonly name: string
  readonly value: number
  readonly limit: number
  /** Where it is. */
  readonly place: string
}

export function holdToLimits(figures: HouseFigures, limits: typeof HOUSE_LIMITS = HOUSE_LIMITS): readonly Held[] {
  const { functions, files, ports, crossings, pushPath, readmeWords } = figures
  const shared = ports.filter(({ place }) => place === 'flow/ports.ts')
  const own = ports.filter(({ place }) => place !== 'flow/ports.ts')
  return [
    {
      name: 'lines of the longest function',
      value: functions[0]?.size ?? 0,
      limit: limits.functionLines,
      place: functions[0]?.place ?? '',
    },
    {
      name: 'share of functions over 60 lines',
      value: shareOfLong(figures),
      limit: limits.longFunctionShare,
      place: longFunctions(figures)
        .map(({ size, place }) => `${place} ${size}`)
        .join(', '),
    },
    { name: 'lines of the largest file', value: files[0]?.size ?? 0, limit: limits.fileLines, place: files[0]?.place ?? '' },
    { name: 'lines of the largest ports of a capability', value: own[0]?.size ?? 0, limit: limits.portsLines, place: own[0]?.place ?? '' },
    { name: 'lines of the shared ports', value: shared[0]?.size ?? 0, limit: limits.sharedPortsLines, place: 'flow/ports.ts' },
    { name: 'lines of app.ts', value: files.find(({ place }) => place === 'app.ts')?.size ?? 0, limit: limits.appLines, place: 'app.ts' },
    { name: 'imports between capabilities in flow/', value: crossings.length, limit: limits.crossings, place: crossings.join(', ') },
    { name: 'files a push passes', value: pushPath.length, limit: limits.pushPathFiles, place: 'docs/architecture.md' },
    { name: 'words of the README', value: readmeWords, limit: limits.readmeWords, place: 'README.md' },
  ]
}
