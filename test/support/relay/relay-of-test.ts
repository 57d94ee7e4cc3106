import { onTestFinished } from 'vitest'
import { NO_CARRIER } from '../runner/constants.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import { loadConfig } from './load-config.ts'
import { type Sections, startTestRelay, writeConfig } from './relay.ts'

/** Starts a relay that is stopped after the test, unless the test stops it. By default its folder is new, and no carrier answers it. */
export async function relayOfTest(sections: Sections = {}, { folder = temporaryFolder(), carrierUrl = NO_CARRIER } = {}) {
  const relay = await startTestRelay(folder, carrierUrl, sections)
  onTestFinished(() => relay.stop())
  /** Applies the config with these sections instead of the ones at the start. */
  const reloadWith = (changed: Sections = {}) =>
    relay.reload(loadConfig(writeConfig(folder, carrierUrl, { ...sections, ...changed }), process.env))
  return { ...relay, folder, reloadWith }
}
