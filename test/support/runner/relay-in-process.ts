/** Tests import the compiled form of this file to start a relay in the test's own process. The sources would load a hundred modules at each start. */
export { startRelay } from '../../../src/app.ts'
export { loadConfig } from '../../../src/core/config/config.ts'
export { loadSections } from '../../../src/wings.ts'
