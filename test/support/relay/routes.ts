import { loadRoutes } from '../../../src/assembly/internal-listener.ts'

/** Every route of the internal listener, and of both by area. */
export const { internal: INTERNAL_ROUTES, capabilities: CAPABILITIES } = await loadRoutes()
export const ROUTES = CAPABILITIES.flatMap(({ routes }) => routes)
