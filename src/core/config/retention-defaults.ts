/** How long each kind of data is kept if the config file does not say. */
export const RETENTION_DEFAULTS = {
  raw: '90d',
  history: '400d',
  deliveries: '30d',
  feed: '90d',
  audit: '400d',
  held: '400d',
  reports: '1830d',
} as const
