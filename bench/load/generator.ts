import type { GeneratorCommand, GeneratorReply } from './messages.ts'
import { prepareRequests, type Requests } from './requests.ts'
import { runLoad } from './run.ts'

/** The load generator, a process that all measurements share. Its parent sends it commands. */
let requests: Requests | null = null

process.on('message', (command: GeneratorCommand) => {
  obey(command).then(reply, (error: unknown) => reply({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }))
})
process.on('disconnect', () => process.exit())

async function obey(command: GeneratorCommand): Promise<GeneratorReply> {
  if (command.kind === 'prepare') {
    requests = prepareRequests(command.plan)
    return { kind: 'prepared' }
  }
  if (requests === null) throw new Error('nothing was prepared')
  return { kind: 'ran', result: await runLoad(requests, command.options) }
}

function reply(message: GeneratorReply): void {
  process.send?.(message)
}
