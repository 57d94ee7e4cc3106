import { z } from 'zod'
import { filterSchemas, type Kinds, type Limit, settingSchemas } from '../../domain/delivery/endpoint-settings.ts'
import { instant, named, numberedId, wholeNumber } from '../server/answer-schemas.ts'
import { answerStart, failureReason } from './delivery-schemas.ts'

const limit = <Value>(schema: z.ZodType<Value>, { label, unset }: Limit) =>
  schema.nullable().describe(`${label}; null: ${unset.includes('.') ? `\`${unset}\`` : unset}.`)

/** How the API shows each kind of setting. */
const SHOWN: Kinds<string> = {
  flag: ({ answer }) => z.boolean().describe(answer),
  choice: ({ names }) => z.enum(names),
  either: () => z.boolean().nullable(),
  amount: (row) => limit(z.number(), row),
  count: (row) => limit(wholeNumber(), row),
  waits: (row) => limit(z.array(z.string()), row),
  values: () => z.array(z.string()).nullable(),
}

/** The members that tell how attempts failed. */
const failedWith = () => ({
  status: wholeNumber().nullable().describe('Null: there was no answer; see `reason`.'),
  reason: failureReason().nullable(),
  ...answerStart(),
  delivery: numberedId().describe('The delivery that last failed like this.'),
})

const redacted = (): z.ZodType<string> => z.literal('[redacted]')

function endpointMembers() {
  const { signature, backfill, ...settings } = settingSchemas(SHOWN)
  return {
    id: numberedId(),
    name: z.string(),
    url: z.string(),
    enabled: z.boolean(),
    signature,
    filters: z.strictObject(filterSchemas(SHOWN)),
    backfill,
    beganAt: instant().describe('When it began. It is sent everything that happened since then.'),
    ...settings,
    headers: z.record(z.string(), redacted()).describe('The names of its fixed headers; the values are never shown.'),
    origin: z.enum(['config', 'managed']),
    state: z.enum(['active', 'failing', 'disabled']),
    disabledBecause: z.enum(['operator', 'gone', 'failing', 'unnamed']).nullable(),
    disabledSince: instant().nullable().describe('Null: it is enabled, or the time is not known.'),
    disabledBy: z.string().nullable().describe('The operator who disabled it; null: no operator did.'),
    waiting: wholeNumber().describe('How many deliveries wait for it.'),
    oldestWaitingSince: instant().nullable().describe('Null: nothing waits.'),
    givenUp: wholeNumber().describe('How many deliveries are dead.'),
    lastSuccessAt: instant().nullable(),
    lastFailure: z.strictObject({ at: instant(), ...failedWith() }).nullable(),
    failingSince: instant().nullable().describe('When the first attempt failed after the last accepted one; null: none has failed since.'),
    limitPerSecond: z
      .number()
      .nullable()
      .describe('It limits us (429, or 503 with `Retry-After`) to about so many deliveries a second; null: it does not.'),
    waitsUntil: instant().nullable().describe('It limits us and asked to be sent nothing until then; null: it is sent deliveries.'),
    nextProbeAt: instant()
      .nullable()
      .describe('While it is failing: when a waiting event is attempted next; null: nothing waits, or it is not failing.'),
    newEventProbeAt: instant()
      .nullable()
      .describe(
        'While it is failing: when an event that comes now would be attempted, if nothing else waits for its parcel; null: it is not failing.',
      ),
    keySince: instant().nullable().describe('When its key was given; null: the key is in the config file, or the time is not known.'),
    nextKeyFrom: instant().nullable().describe('When the new key takes over; null: no key is being replaced.'),
    queuedTo: wholeNumber().nullable().describe('The sequence in the feed up to which events are queued for it; null: it has caught up.'),
  }
}

const fingerprint = () =>
  z
    .string()
    .regex(/^[0-9a-f]{8}$/)
    .nullable()

export const endpointSchema = named('Endpoint', () => z.strictObject(endpointMembers()))

export const inspectedEndpointSchema = named('InspectedEndpoint', () =>
  z.strictObject({
    ...endpointMembers(),
    keyFingerprint: fingerprint().describe(
      'A fingerprint of the key that signs, as `parcel-relay fingerprint` prints it; null: the key cannot be opened.',
    ),
    nextKeyFingerprint: fingerprint().describe('A fingerprint of the key that replaces it; null: no key is being replaced.'),
    keyFrom: z
      .union([z.strictObject({ env: z.string() }), z.strictObject({ file: z.string() })])
      .nullable()
      .describe(
        'Where the config takes its key from: an environment variable or a file; null: the key is written in the config itself, or is not in the config.',
      ),
    failures: z
      .array(z.strictObject({ ...failedWith(), count: wholeNumber(), firstAt: instant(), lastAt: instant() }))
      .describe('The failed attempts of the last 30 days, grouped by equal answers, the latest group first; at most 20 groups.'),
  }),
)

export const keyedEndpointSchema = named('KeyedEndpoint', () =>
  z.strictObject({
    ...endpointMembers(),
    sharedKey: z.string().optional().describe('Shown in this answer only.'),
    warnings: z
      .array(z.string())
      .optional()
      .describe('What may be a mistake in its settings, such as a value in `filters` that no event has had so far.'),
  }),
)

export const testSchema = named('EndpointTest', () =>
  z.strictObject({
    result: z.enum(['accepted', 'rejected', 'failed']),
    status: wholeNumber().nullable().describe('Null: there was no answer; see `reason`.'),
    reason: failureReason().nullable(),
    durationMs: wholeNumber(),
    address: z.string().nullable().describe('The IP address that took or refused the connection; null: there was no connection.'),
    ...answerStart(),
  }),
)
