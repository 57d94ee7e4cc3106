import { Command } from 'commander'
import { stringify } from 'yaml'
import { configJsonSchema } from '../../core/config/config.ts'
import type { LoadSections, Section } from '../../core/config/schema.ts'
import { readConfig } from './asking/config-file.ts'
import { withExitCodes } from './exit-codes.ts'
import { redactedConfig } from './redacted-config.ts'

/** `config print`, `config schema` and `config reference`. */
export function configCommand(loadSections: LoadSections): Command {
  const command = new Command('config')
    .description('show the configuration')
    .addCommand(printCommand(loadSections))
    .addCommand(configSchemaCommand(loadSections))
    .addCommand(configReferenceCommand(loadSections))
  return withExitCodes(command)
}

function printCommand(loadSections: LoadSections): Command {
  return new Command('print')
    .description('print every setting in effect, defaults included; secrets are masked')
    .option('--config <file>', 'the config file', 'config/relay.yaml')
    .option('--json', 'print JSON instead of YAML')
    .action(async (options: { readonly config: string; readonly json?: true }) => {
      const config = await readConfig(options.config, await loadSections())
      if (config === null) return
      for (const warning of config.warnings) process.stderr.write(`warning: ${warning}\n`)
      const settings = redactedConfig(config)
      process.stdout.write(options.json ? `${JSON.stringify(settings, null, 2)}\n` : stringify(settings))
    })
}

/** The keywords of JSON Schema that the reference uses. */
interface Setting {
  /** The type and bounds, if keywords of JSON Schema cannot express them. */
  readonly $comment?: string
  readonly description?: string
  readonly default?: unknown
  readonly type?: string
  readonly properties?: Readonly<Record<string, Setting>>
  readonly additionalProperties?: boolean | Setting
  readonly required?: readonly string[]
  readonly items?: Setting
  readonly minItems?: number
  readonly anyOf?: readonly Setting[]
  readonly enum?: readonly string[]
  readonly const?: string
  readonly minimum?: number
  readonly maximum?: number
}

interface Row {
  readonly key: string
  readonly setting: Setting
  readonly isRequired: boolean
}

const INTRODUCTION = `# Configuration

\`npm run docs\` generates this page from the schema of the settings. The relay reads one YAML file. \`config/example.yaml\` explains every
setting, and \`config/relay.schema.json\` gives editors completion. A setting that you leave out has its default.

- A **duration** is a whole number and its unit: \`250ms\`, \`10s\`, \`5m\`, \`2h\`, \`30d\`.
- A **size** is a number of bytes, or a whole number and its unit: \`512KB\`, \`64MB\`, \`1GB\` (1KB is 1024 bytes).
- A **secret** is \`{ env: NAME }\` (an environment variable) or \`{ file: PATH }\` (one newline at the end of the file is dropped). You can write the
  secret itself, but then it is in every copy of the file. A reload reads the file of a secret again. The environment of a running process cannot
  change, so a new value of a variable needs a restart.
- Relative paths start at the working directory. \`[]\` stands for each entry of a list, \`*\` for any other key.
- A **required** setting must be present, unless its whole group or list entry is left out.
`

/** `config reference`: generates `docs/configuration.md`. */
function configReferenceCommand(loadSections: LoadSections): Command {
  return new Command('reference')
    .description('print every setting with its type, default, bounds and meaning, as Markdown')
    .action(async () => {
      process.stdout.write(presentReference(await loadSections()))
    })
}

/** Returns the exact content of `docs/configuration.md`. */
export function presentReference(sections: readonly Section[]): string {
  const root: Setting = configJsonSchema(sections)
  return [INTRODUCTION, ...Object.entries(root.properties ?? {}).map(([key, setting]) => presentSection(root, key, setting))].join('\n')
}

function presentSection(root: Setting, key: string, setting: Setting): string {
  const own = { key, setting, isRequired: root.required?.includes(key) ?? false }
  const rows = isPlain(setting) ? [own] : rowsWithin(setting, isList(setting) ? `${key}[].` : `${key}.`)
  const about = isPlain(setting) ? '' : `${setting.description ?? ''}${own.isRequired ? ' Required.' : ''}\n\n`
  return `## ${key}\n\n${about}| key | type and bounds | default | meaning |\n|---|---|---|---|\n${rows.map(presentRow).join('\n')}\n`
}

/** Returns a row for each setting in a group or in the entries of a list. A list, or a group without a default, also has its own row. */
function rowsWithin(setting: Setting, prefix: string): readonly Row[] {
  const { properties = {}, required = [], additionalProperties } = setting.items ?? setting
  const rows = Object.entries(properties).flatMap(([name, inner]): readonly Row[] => {
    const row = { key: `${prefix}${name}`, setting: inner, isRequired: required.includes(name) }
    if (isPlain(inner)) return [row]
    const within = rowsWithin(inner, `${row.key}${isList(inner) ? '[]' : ''}.`)
    return inner.default === undefined || isList(inner) ? [row, ...within] : within
  })
  const others = typeof additionalProperties === 'object' ? [{ key: `${prefix}*`, setting: additionalProperties, isRequired: false }] : []
  return [...rows, ...others]
}

/** Whether the setting contains no other settings. */
function isPlain(setting: Setting): boolean {
  return (setting.items ?? setting).properties === undefined
}

function isList(setting: Setting): boolean {
  return setting.items !== undefined
}

function presentRow({ key, setting, isRequired }: Row): string {
  const { description = '' } = setting
  return `| ${[`\`${key}\``, kindOf(setting), isRequired ? 'required' : defaultOf(setting), description].map(escapeCell).join(' | ')} |`
}

/** Returns the default as Markdown; empty if the description states it already. */
function defaultOf(setting: Setting): string {
  if (setting.default !== undefined) return `\`${presentValue(setting.default)}\``
  return setting.description?.includes('Default:') ? '' : 'none'
}

function kindOf(setting: Setting): string {
  const { $comment, type, minItems = 0, minimum, maximum } = setting
  if ($comment !== undefined) return $comment
  if (setting.const !== undefined) return `\`${setting.const}\``
  if (setting.enum !== undefined) return setting.enum.map((name) => `\`${name}\``).join(' or ')
  if (setting.anyOf !== undefined) return setting.anyOf.map(kindOf).join(' or ')
  if (setting.items !== undefined) return `list of ${kindOf(setting.items)}${minItems > 0 ? `, at least ${minItems}` : ''}`
  if (type === 'integer') return `whole number, ${boundsOf(minimum, maximum)}`
  if (type === 'number') return `number, ${boundsOf(minimum, maximum)}`
  if (type === 'boolean') return '`true` or `false`'
  return type === 'object' ? 'group' : 'text'
}

function boundsOf(minimum = 0, maximum = Number.MAX_SAFE_INTEGER): string {
  return maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `${minimum} to ${maximum}`
}

function presentValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(presentValue).join(', ')}]`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** `config schema`: generates `config/relay.schema.json`. */
function configSchemaCommand(loadSections: LoadSections): Command {
  return new Command('schema').description('print the JSON Schema of the config file, for editors').action(async () => {
    process.stdout.write(presentSchema(await loadSections()))
  })
}

/** Returns the exact content of `config/relay.schema.json`. */
export function presentSchema(sections: readonly Section[]): string {
  const expanded = JSON.stringify(configJsonSchema(sections), null, 2)
  // Write lists of plain values on one line, as the formatter of this repository does.
  const compact = expanded.replace(/\[\n\s+([^[\]{}]+?)\n\s+\]/g, (_, items: string) => `[${items.replace(/\n\s+/g, ' ')}]`)
  return `${compact}\n`
}
