import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import { ASSERTS_TYPES, EMPTY_NAMES, READS_ENVIRONMENT, ROOMS, type Room, TOLD_THE_TIME } from './house-rules.ts'
import type { Finding, SourceModule } from './source-module.ts'

/** How much was read, and what breaks the rules: one line each, with its place. */
export interface HouseReport {
  readonly modules: number
  readonly imports: number
  readonly violations: readonly string[]
}

/** Checks modules against the rules of the house. Reading nothing is itself a violation, because no output must mean that all is well. */
export function checkHouse(modules: readonly SourceModule[]): HouseReport {
  const imports = modules.reduce((sum, { imports: sites }) => sum + sites.length, 0)
  const nothing =
    modules.length === 0 || imports === 0 ? [`read ${modules.length} modules and ${imports} imports: nothing was checked`] : []
  return {
    modules: modules.length,
    imports,
    violations: [...nothing, ...modules.flatMap((module) => checkModule(module, modules)), ...cyclesOf(modules)],
  }
}

function checkModule(module: SourceModule, modules: readonly SourceModule[]): readonly string[] {
  const { path } = module
  const room = roomOf(path)
  const imports =
    room === undefined ? [`${path}: belongs to no room`] : module.imports.flatMap((site) => checkImport(path, room, site, modules))
  return [...checkName(path), ...imports, ...module.findings.flatMap((finding) => checkFinding(path, finding))]
}

function checkName(path: string): readonly string[] {
  const [base = '', ...others] = posix
    .basename(path)
    .replace(/\.tsx?$/, '')
    .split('.')
  const folders = posix
    .dirname(path)
    .split('/')
    .filter((name) => name !== '.')
  return [
    ...[...folders, base].filter((name) => EMPTY_NAMES.includes(name)).map((name) => `${path}: "${name}" names nothing that is inside`),
    ...[...folders, base, ...others]
      .filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))
      .map((name) => `${path}: "${name}" is not kebab-case`),
  ]
}

function checkImport(path: string, room: Room, { specifier, line }: SourceModule['imports'][number], modules: readonly SourceModule[]) {
  const at = `${path}:${line}`
  if (specifier === null) return [`${at}: imports a computed name, which nobody can check`]
  if (specifier.startsWith('.')) {
    const target = resolve(path, specifier)
    if (!modules.some((other) => other.path === target)) return [`${at}: imports ${specifier}, which is no module of the sources`]
    return isWithin(target, [...room.imports, homeOf(path)]) ? [] : [`${at}: ${room.place} may not import ${target}`]
  }
  const isPlatform = specifier.startsWith('node:') || builtinModules.includes(specifier)
  if (isPlatform) return room.platform.includes(specifier) ? [] : [`${at}: ${room.place} may not use ${specifier}`]
  return room.libraries.includes(packageOf(specifier)) ? [] : [`${at}: ${room.place} may not use the library ${packageOf(specifier)}`]
}

function checkFinding(path: string, { kind, line }: Finding): readonly string[] {
  const at = `${path}:${line}`
  switch (kind) {
    case 're-export':
      return [`${at}: passes on what another module exports; import it from there`]
    case 'environment':
      return isWithin(path, READS_ENVIRONMENT) ? [] : [`${at}: reads the environment, which only the settings do`]
    case 'clock':
      return isWithin(path, TOLD_THE_TIME) ? [`${at}: asks for the time or for something random; both are handed in`] : []
    case 'assertion':
      return isWithin(path, ASSERTS_TYPES) ? [] : [`${at}: asserts a type`]
    case 'any':
      return [`${at}: says any`]
    case 'non-null':
      return [`${at}: says !, that something is not null`]
    case 'syntax':
      return [`${at}: cannot be read as a module`]
  }
}

/** Returns a module's own room: its topmost folder, or the file itself at the root. */
function homeOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/') + 1) : path
}

function roomOf(path: string): Room | undefined {
  return ROOMS.filter(({ place }) => isWithin(path, [place])).sort((a, b) => b.place.length - a.place.length)[0]
}

function isWithin(path: string, places: readonly string[]): boolean {
  return places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place))
}

function resolve(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier)
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/** Returns every cycle of imports once, including imports of types, from its first module on. */
function cyclesOf(modules: readonly SourceModule[]): readonly string[] {
  const edges = new Map(
    modules.map(({ path, imports }) => [
      path,
      imports.flatMap(({ specifier }) => (specifier?.startsWith('.') ? resolve(path, specifier) : [])),
    ]),
  )
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) return void found.push(`cycle: ${[...trail.slice(start), path].join(' -> ')}`)
    if (done.has(path)) return
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const { path } of modules) visit(path, [])
  return found
}
