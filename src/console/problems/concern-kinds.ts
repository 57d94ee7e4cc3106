/** A part of the page `runbooks` of the manual: the id of its heading, and the text of a link to it. */
export type Runbook = readonly [heading: string, name: string]

/** What is known of a kind of concern. */
interface Described {
  /** Whether it can wait until the morning. */
  readonly canWait: boolean
  readonly runbook: Runbook
}

/** What else is wrong than the parts that work for parcels: `check`, a metric or an event knows it as well. The gravest come first. */
export const CORE_CONCERNS = {
  certificate_expired: { canWait: false, runbook: ['certificate_expiring', 'a certificate expires'] },
  pushes_unaccepted: { canWait: false, runbook: ['a-signature-does-not-match', 'a signature does not match'] },
  role_missing: { canWait: false, runbook: ['a-role-is-missing', 'a role is missing'] },
  clock_off: { canWait: false, runbook: ['clock_doubted', 'the clock may be wrong'] },
  deliveries_unwritten: { canWait: false, runbook: ['deliveries-cannot-be-written-down', 'deliveries cannot be written down'] },
  certificate_expiring: { canWait: true, runbook: ['certificate_expiring', 'a certificate expires'] },
  reload_failed: { canWait: true, runbook: ['reload_failed', 'a reload fails'] },
  polls_behind: { canWait: true, runbook: ['polls-fall-behind', 'polls fall behind'] },
  endpoint_behind: { canWait: true, runbook: ['an-endpoint-falls-behind', 'an endpoint falls behind'] },
  wal_grows: { canWait: true, runbook: ['the-write-ahead-log-grows', 'the write-ahead log grows'] },
} as const satisfies Readonly<Record<string, Described>>

/** A kind of concern of a wing. `before`: it is graver than this kind; absent: all others are graver. */
interface ConcernDescription extends Described {
  readonly before?: keyof typeof CORE_CONCERNS
}

/** Kinds of concerns by their names, as a wing offers them. */
export type ConcernDescriptions = Readonly<Record<string, ConcernDescription>>

/** Every kind. Each wing adds its own to this interface. */
export interface ConcernKinds extends Readonly<Record<keyof typeof CORE_CONCERNS, unknown>> {}

export type ConcernKind = keyof ConcernKinds

export interface Concern {
  readonly kind: ConcernKind
  /** The name of the endpoint that it is about; null: it is about none. */
  readonly endpoint: string | null
  /** The name of the replica that has it, if there are several and not all have it. */
  readonly replica: string | null
  /** One line without a full stop. */
  readonly title: string
  /** Epoch milliseconds; null: not known. */
  readonly sinceMs: number | null
  readonly evidence: readonly string[]
  readonly todo: readonly string[]
}

/** A concern with what is known of its kind. */
export interface DescribedConcern extends Concern, Described {}

/** Sorts what is found by a list of kinds. */
export function inOrder<One extends { readonly kind: string }>(found: readonly One[], kinds: readonly string[]): readonly One[] {
  return found.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
}

export type ConcernTable = ReturnType<typeof createConcernTable>

/** What is said of a concern whose kind its wing does not describe. */
const UNDESCRIBED: Described = { canWait: false, runbook: ['', 'all runbooks'] }

/** Joins the kinds of the core with those that wings offer. */
export function createConcernTable(offered: readonly ConcernDescriptions[]) {
  const ofWings = offered.flatMap((kinds) => Object.entries(kinds))
  const standBefore = (core: string | undefined) => ofWings.filter(([, { before }]) => before === core)
  const known: ReadonlyMap<string, Described> = new Map<string, Described>([
    ...Object.entries(CORE_CONCERNS).flatMap((one) => [...standBefore(one[0]), one]),
    ...standBefore(undefined),
  ])
  const kinds = [...known.keys()]
  return {
    /** What is known of each kind, the gravest first. */
    known,
    /** Adds what is known of their kinds, and puts the gravest first. */
    describe: (concerns: readonly Concern[]): readonly DescribedConcern[] =>
      inOrder(concerns, kinds).map((one) => {
        const { canWait, runbook } = known.get(one.kind) ?? UNDESCRIBED
        return { ...one, canWait, runbook }
      }),
  }
}
