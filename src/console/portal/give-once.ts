import { type FormerOrder, type SentForm, SHOWN_AGAIN_MS } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Part, Reads } from '../../core/flow/relay.ts'

export interface Giving<Answer> {
  /** Carries out the order. Its transaction stores the form, and fails if the form has given an order before. */
  readonly give: () => Promise<Answer>
  /** Makes the same answer again, from what was stored. */
  readonly again: (former: FormerOrder) => Promise<Answer>
  /** Whether the answer says that the order was not carried out. */
  readonly isRefused: (answer: Answer) => boolean
}

/** Answers a form of the portal. Throws `stale_form` if the form was sent before with other fields, or too long ago. */
export type GiveOnce<Answer> = (form: SentForm, giving: Giving<Answer>) => Promise<Answer>

/**
 * Lets a form give its order once, however often it is sent, and to whichever replica. A repetition waits for the order and gets the same
 * answer.
 */
export function createGiveOnce<Answer>({ reads, clock }: Part<'clock', 'now'> & Reads<'findFormerOrder'>): GiveOnce<Answer> {
  const underWay = new Map<string, { readonly fields: string; readonly answer: Promise<Answer> }>()

  return async (form, giving) => {
    const other = underWay.get(form.id)
    if (other?.fields === form.fields) return await other.answer
    await other?.answer.catch(() => undefined)
    const answer = answerOf(form, giving)
    underWay.set(form.id, { fields: form.fields, answer })
    try {
      return await answer
    } finally {
      if (underWay.get(form.id)?.answer === answer) underWay.delete(form.id)
    }
  }

  async function answerOf(form: SentForm, { give, again, isRefused }: Giving<Answer>): Promise<Answer> {
    const repeat = async (former: FormerOrder): Promise<Answer> => {
      refuseOther(form, former, clock.now())
      return await again(former)
    }
    const former = await reads.findFormerOrder(form.id)
    if (former !== null) return await repeat(former)
    const given = await give().then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error }),
    )
    if ('answer' in given && !isRefused(given.answer)) return given.answer
    // Another replica may have carried out the same form meanwhile, which is why this one was refused or failed.
    const meanwhile = await reads.findFormerOrder(form.id).catch(() => null)
    if (meanwhile !== null) return await repeat(meanwhile)
    if ('error' in given) throw given.error
    return given.answer
  }
}

function refuseOther({ fields }: SentForm, former: FormerOrder, nowMs: number): void {
  const isOther = former.fields !== null && former.fields !== fields
  if (!isOther && nowMs - former.action.atMs <= SHOWN_AGAIN_MS) return
  const why = isOther ? 'with other entries' : 'more than ten minutes ago'
  throw new AppError('stale_form', `This form was sent before ${why}, and was carried out then. Now nothing was done. Load the page again.`)
}
