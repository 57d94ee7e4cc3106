import { writeFileSync } from 'node:fs'
import { Command, Option } from 'commander'
import { addRelayOptions, type ClientOptions, openRelay, order, relayAddress } from '../../console/cli/asking/ask-relay.ts'
import type { ReportAnswer } from './report.routes.ts'

const FORMATS = ['html', 'csv', 'json'] as const

interface Options extends ClientOptions {
  readonly month?: string
  readonly format: (typeof FORMATS)[number]
  readonly output?: string
}

/** `report`: what the carrier did in a month. */
export function reportCommand(): Command {
  const command = new Command('report')
    .description('what the carrier did in a month: pushes lost, late and odd, polls, outages, and what proves it (docs/insight.md)')
    .option('--month <month>', 'such as 2026-10; by default the present month')
    .addOption(new Option('--format <format>', 'html prints on two A4 sheets').choices(FORMATS).default('html'))
    .option('--output <file>', 'write to this file instead of standard output')
    .action(async ({ month, format, output, ...options }: Options) => {
      const ask = await openRelay(options)
      const asked = month === undefined ? '' : `?month=${encodeURIComponent(month)}`
      const report = await order<ReportAnswer>(ask, 'GET', `/relay/report${asked}`)
      const text = await textOf(report, options.json === true ? 'json' : format, relayAddress(options))
      if (output === undefined) process.stdout.write(text)
      else writeFileSync(output, text)
    })
  return addRelayOptions(command)
}

async function textOf(report: ReportAnswer, format: Options['format'], portal: string): Promise<string> {
  if (format === 'json') return `${JSON.stringify(report)}\n`
  if (format === 'csv') return (await import('./report-words.ts')).reportCsv(report)
  return (await import('./report-sheet.ts')).renderSheet(report, { portal, nowMs: Date.now() })
}
