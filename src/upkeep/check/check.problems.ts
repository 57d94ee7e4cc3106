import { concernOfVerdict, type FindConcerns, type KeepLook } from '../../console/problems/concern.ts'
import type { ConcernDescriptions } from '../../console/problems/concern-kinds.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { judgeOpenFiles } from './check.rules.ts'
import { judgeAtRestKeys, openFilesLimit } from './local-probes.ts'

export const CHECK_KINDS = {
  keys_lost: { canWait: false, runbook: ['keys-are-lost', 'keys are lost'], before: 'pushes_unaccepted' },
  open_files: { canWait: false, runbook: ['too-few-files-may-be-open', 'too few files may be open'], before: 'deliveries_unwritten' },
} satisfies ConcernDescriptions

declare module '../../console/problems/concern-kinds.ts' {
  interface ConcernKinds extends Readonly<Record<keyof typeof CHECK_KINDS, unknown>> {}
}

/** Finds what a relay lacks on its machine. It judges as `check` does, but asks nobody. */
export function checkProblems(
  { atRest, endpointKeys, settings }: Pick<Relay, 'atRest' | 'endpointKeys' | 'settings'>,
  keep: KeepLook,
): FindConcerns {
  return keep(async () => {
    const fault = atRest.fault()
    const keys = judgeAtRestKeys(settings(), fault === null ? await endpointKeys.check() : null, fault)
    return [
      ...concernOfVerdict('keys_lost', 'The keys that encrypt the secrets cannot be used', keys),
      ...concernOfVerdict('open_files', 'Too few files may be open', judgeOpenFiles(openFilesLimit(), settings().limits.connections)),
    ]
  })
}
