import { concernOfVerdict, type FindConcerns, type KeepLook } from '../../console/problems/concern.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { judgeOpenFiles } from './check.rules.ts'
import { judgeAtRestKeys, openFilesLimit } from './local-probes.ts'

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
