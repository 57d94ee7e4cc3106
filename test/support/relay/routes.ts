import { loadRoutes } from '../../../src/assembly/internal-listener.ts'

/** Every route of the internal listener, and of both by area, every operator event, and every kind of concern. */
export const { internal: INTERNAL_ROUTES, capabilities: CAPABILITIES, events: OPERATOR_EVENTS, concerns: CONCERNS } = await loadRoutes()
export const ROUTES = CAPABILITIES.flatMap(({ routes }) => routes)
