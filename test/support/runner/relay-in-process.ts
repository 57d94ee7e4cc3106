/** What tests start in their own process: compiled with the rest, because a relay and its threads would load some hundred modules one by one at each start. */
export { startRelay } from '../../../src/app.ts'
export { loadConfig } from '../../../src/config/config.ts'
