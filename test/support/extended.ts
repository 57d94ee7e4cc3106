/** Whether this is `npm run test:extended`: as often as in `npm test`, but what that leaves out. */
export const EXTENDED = process.env.RELAY_FAULTS === 'extended'
