import { fileURLToPath } from 'node:url'

/** Of what lies beside the sources. From here the way is the same in `src` and, compiled, in `dist`; from a room it would not be. */
export const DEMO_CONFIG = fileURLToPath(new URL('../config/demo.yaml', import.meta.url))
