import type { Command } from 'commander'

/** One or two examples of each command, without the word `parcel-relay`. A test fails if a command has no example. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  '': ['demo', 'serve --config config/relay.yaml'],
  serve: ['serve --config config/relay.yaml'],
  demo: ['demo --parcels 20'],
  sandbox: ['sandbox --loss 0.2'],
  status: ['status'],
  check: ['check --config config/relay.yaml'],
  parcels: ['parcels --status DeliveryStarted', 'parcels --stopped stale'],
  history: ['history AB123456789SE'],
  watch: ['watch AB123456789SE', 'watch --file orders.csv --column tracking'],
  refresh: ['refresh AB123456789SE'],
  forget: ['forget AB123456789SE', 'forget AB123456789SE --yes'],
  endpoints: ['endpoints', 'endpoints add shop https://shop.internal/parcel-events'],
  'endpoints list': ['endpoints list --json'],
  'endpoints show': ['endpoints show shop'],
  'endpoints add': ['endpoints add shop https://shop.internal/parcel-events --status DeliverySucceeded'],
  'endpoints set': ['endpoints set shop --to https://shop.internal/new-address --no-rate'],
  'endpoints enable': ['endpoints enable shop'],
  'endpoints disable': ['endpoints disable shop'],
  'endpoints retry': ['endpoints retry shop'],
  'endpoints rotate': ['endpoints rotate shop', 'endpoints rotate shop --now'],
  'endpoints test': ['endpoints test shop'],
  'endpoints remove': ['endpoints remove shop --yes'],
  deliveries: ['deliveries --endpoint shop --state dead', 'deliveries show 4711'],
  'deliveries list': ['deliveries list --parcel AB123456789SE'],
  'deliveries show': ['deliveries show 4711'],
  'deliveries retry': ['deliveries retry 4711'],
  'deliveries skip': ['deliveries skip 4711'],
  'deliveries replay': ['deliveries replay 4711', 'deliveries replay --endpoint shop --since 2h --dry-run'],
  retry: ['retry --endpoint shop'],
  replay: ['replay --endpoint shop --since 2h --dry-run', 'replay 4711 --to warehouse'],
  inbox: [
    'inbox --state quarantined',
    'inbox --refresh --state quarantined',
    'inbox --dismiss --state quarantined --reason event_time --yes',
    'inbox --refused',
  ],
  tail: ['tail', 'tail deliveries --endpoint shop'],
  reload: ['reload'],
  watchdogs: ['watchdogs --reference ORDER-1207', 'watchdogs try rules.yaml --since 30d'],
  'watchdogs list': ['watchdogs list --reference ORDER-1207', 'watchdogs list --rule no-scan --ended'],
  'watchdogs try': ['watchdogs try rules.yaml --since 30d'],
  rebuild: ['rebuild --dry-run'],
  'move-store': ["move-store --to 'postgres://relay@db.internal/relay'"],
  verify: ["verify push.json --signature 'kTrj6hB1b0qv4gE0xk2J0q8r7v5yqk6tq2l0o1m3n4M='"],
  fingerprint: ['fingerprint --key-file shop.key'],
  restore: ['restore backups/before-upgrade.db'],
  prune: ['prune --dry-run'],
  backup: ['backup before-upgrade'],
  report: ['report --month 2026-10 --output october.html', 'report --format csv'],
  export: ['export --to warehouse --format ndjson', 'export --apply-erasures warehouse'],
  config: ['config print'],
  'config print': ['config print --config config/relay.yaml'],
  'config schema': ['config schema > relay.schema.json'],
  'config reference': ['config reference > configuration.md'],
  'hash-password': ['hash-password', 'hash-password < password.txt'],
  operator: ['operator test'],
  'operator test': ['operator test'],
  'operator enable': ['operator enable'],
  secrets: ['secrets reseal'],
  'secrets reseal': ['secrets reseal'],
  'secrets rotate-tokens': ['secrets rotate-tokens'],
  'secrets give-up-tombstones': ['secrets give-up-tombstones', 'secrets give-up-tombstones --yes'],
  'generate-key': ['generate-key'],
  completion: ['completion bash > /etc/bash_completion.d/parcel-relay'],
}

export function addExamples(program: Command): void {
  for (const { path, command } of commandsWithin(program)) {
    const examples = EXAMPLES[path] ?? []
    const lines = examples.map((example) => `  $ parcel-relay ${example}`)
    if (lines.length > 0) command.addHelpText('after', `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`)
  }
}

/** A command. `path`: its words after `parcel-relay`, such as `endpoints add`; empty: the program itself. */
export interface NamedCommand {
  readonly path: string
  readonly command: Command
}

export function commandsWithin(command: Command, path = ''): readonly NamedCommand[] {
  const inner = command.commands.flatMap((one) => commandsWithin(one, `${path} ${one.name()}`.trim()))
  return [{ path, command }, ...inner]
}
