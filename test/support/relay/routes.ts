import { loadRoutes } from '../../../src/assembly/internal-listener.ts'

/** Every route of the internal listener, and of both by area, and every operator event. */
export const { internal: INTERNAL_ROUTES, capabilities: CAPABILITIES, events: OPERATOR_EVENTS } = await loadRoutes()
export const ROUTES = CAPABILITIES.flatMap(({ routes }) => routes)
