export interface MadeEvent {
  readonly trackingId: string
  /** As the carrier writes it, or not. */
  readonly eventTime: string
  /** For consumers. */
  readonly text: string
}

/** An event as the carrier writes it, which the carrier knows nothing of. */
export function madeEvent({ trackingId, eventTime, text }: MadeEvent): string {
  return JSON.stringify({
    status: 'TerminalArrived',
    detailedStatus: 'ArrivedT1',
    eventTime,
    location: 'Kiruna',
    trackingIds: [trackingId],
    distributionType: 'Mailbox',
    displayToConsumer: true,
    consumerDescription: [{ value: text, languageCode: 'en' }],
    detailedStatusDescription: [{ value: `${text} (first terminal)`, languageCode: 'en' }],
  })
}
