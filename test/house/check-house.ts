import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import { EMPTY_NAMES, READS_ENVIRONMENT, ROOMS, type Room, TOLD_THE_TIME, WINGS } from './house-rules.ts'
import type { Finding, SourceModule } from './source-module.ts'

/** How many modules and imports were read, and one line for each violation. Each line begins with a file. */
export interface HouseReport {
  readonly modules: number
  readonly imports: number
  readonly violations: readonly string[]
}

/** It is also a violation if nothing was read, because then no rule was checked. */
export function checkHouse(modules: readonly SourceModule[]): HouseReport {
  const imports = modules.reduce((sum, { imports: sites }) => sum + sites.length, 0)
  const nothing =
    modules.length === 0 || imports === 0 ? [`read ${modules.length} modules and ${imports} imports: nothing was checked`] : []
  return {
    modules: modules.length,
    imports,
    violations: [...nothing, ...modules.flatMap((module) => checkModule(module, modules))],
  }
}

function checkModule(module: SourceModule, modules: readonly SourceModule[]): readonly string[] {
  const { path } = module
  const room = roomOf(path)
  const imports =
    room === undefined ? [`${path}: belongs to no room`] : module.imports.flatMap((site) => checkImport(path, room, site, modules))
  return [...checkName(path), ...imports, ...module.findings.flatMap((finding) => checkFinding(path, finding))]
}

/** The linter checks the spelling of a name (`unicorn/filename-case`). */
function checkName(path: string): readonly string[] {
  const names = path.replace(/\..*$/, '').split('/')
  return names.filter((name) => EMPTY_NAMES.includes(name)).map((name) => `${path}: "${name}" does not say what is inside`)
}

function checkImport(
  path: string,
  room: Room,
  { specifier, line, isOfTypes }: SourceModule['imports'][number],
  modules: readonly SourceModule[],
) {
  const at = `${path}:${line}`
  if (specifier === null) return [`${at}: imports a computed name`]
  if (specifier.startsWith('.')) {
    const target = resolve(path, specifier)
    if (!modules.some((other) => other.path === target)) return [`${at}: imports ${specifier}, which is no module`]
    const wing = wingOf(path)
    const isOfWing = wing === wingOf(target) || (WINGS[wing] ?? [wingOf(target)]).includes(wingOf(target))
    if (!isOfWing && WINGS[wingOf(target)] !== undefined) return [`${at}: ${wing}/ may not import ${target}`]
    const places = [...room.imports, ...(isOfTypes ? (room.types ?? []) : []), room.place.startsWith('*') ? path : homeOf(path)]
    return isWithin(target, places) ? [] : [`${at}: ${room.place} may not import ${target}`]
  }
  const isPlatform = specifier.startsWith('node:') || builtinModules.includes(specifier)
  if (isPlatform) return room.platform.includes(specifier) ? [] : [`${at}: ${room.place} may not use ${specifier}`]
  return room.libraries.includes(packageOf(specifier)) ? [] : [`${at}: ${room.place} may not use the library ${packageOf(specifier)}`]
}

function checkFinding(path: string, { kind, line }: Finding): readonly string[] {
  const at = `${path}:${line}`
  switch (kind) {
    case 're-export':
      return [`${at}: re-exports from another module`]
    case 'environment':
      return isWithin(path, READS_ENVIRONMENT) ? [] : [`${at}: reads the environment: only core/config/ may`]
    case 'clock':
      return isWithin(path, TOLD_THE_TIME) ? [`${at}: reads a clock or random values, which must be passed in`] : []
    case 'syntax':
      return [`${at}: cannot be read as a module`]
  }
}

/** Returns a module's own room: its layer of the core, the commands, the whole of its wing, or the file itself at the root. */
function homeOf(path: string): string {
  return /^core\/[a-z]+\/|^console\/cli\/|^[a-z]+\//.exec(path)?.[0] ?? path
}

function wingOf(path: string): string {
  return path.slice(0, Math.max(path.indexOf('/'), 0))
}

function roomOf(path: string): Room | undefined {
  const isOfName = ({ place }: Room) => place.startsWith('*')
  return ROOMS.filter(({ place }) => isWithin(path, [place])).sort(
    (a, b) => Number(isOfName(b)) - Number(isOfName(a)) || b.place.length - a.place.length,
  )[0]
}

/** @param places folders, files, or `*` and the end of the names of files in wings */
function isWithin(path: string, places: readonly string[]): boolean {
  return places.some((place) => {
    if (place.startsWith('*')) return path.endsWith(place.slice(1)) && !path.startsWith('core/')
    return place.endsWith('/') ? path.startsWith(place) : path === place
  })
}

function resolve(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier)
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
