/** The relay that tests start in their own process. It is compiled, because otherwise each start would load some hundred modules one by one. */
export { startRelay } from '../../../src/app.ts'
export { loadConfig } from '../../../src/config/config.ts'
