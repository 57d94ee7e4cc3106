import { onTestFinished } from 'vitest'
import { loadConfig } from '../../../src/config/config.ts'
import { NO_CARRIER } from '../runner/constants.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import { type Sections, startTestRelay, writeConfig } from './relay.ts'

/** A relay that is stopped after the test, unless the test stops it. Without `folder` it gets a new one, without `carrierUrl` it has no carrier. */
export async function relayOfTest(sections: Sections = {}, { folder = temporaryFolder(), carrierUrl = NO_CARRIER } = {}) {
  const relay = await startTestRelay(folder, carrierUrl, sections)
  onTestFinished(() => relay.stop())
  /** Applies the config with these sections instead of the ones at the start. */
  const reloadWith = (changed: Sections = {}) =>
    relay.reload(loadConfig(writeConfig(folder, carrierUrl, { ...sections, ...changed }), process.env))
  return { ...relay, folder, reloadWith }
}
