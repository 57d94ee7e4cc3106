export interface MadeEvent {
  readonly trackingId: string
  /** The time in the carrier's format or, to make trouble, in another format. */
  readonly eventTime: string
  /** The English text for consumers. */
  readonly text: string
}

/** Makes an event in the carrier's format. The sandbox carrier itself does not know this event. */
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
