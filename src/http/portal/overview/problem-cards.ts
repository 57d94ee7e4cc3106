import { type DiskRoom, refusesFromMs } from '../../../domain/admin/disk-room.ts'
import {
  describeMisdirected,
  type Explanation,
  explainClock,
  explainProblem,
  MISDIRECTED_SHOWN,
  readableReason,
  UNHEARD_OF,
} from '../../../domain/admin/explain-problem.ts'
import { areOnlyMisunderstood, isWarning, misdirectedSincePush, type Problem, type Situation } from '../../../domain/admin/verdict.ts'
import { bytesText, counted, countText, spanText } from '../../../domain/amounts.ts'
import { FAILING_MAX_MS } from '../../../domain/delivery/delivery.ts'
import { extentOf, wordFailure } from '../../../domain/delivery/failure-words.ts'
import { reasonText } from '../../../domain/ingest/quarantine-words.ts'
import { carrierRemedy, lastFailureText } from '../../../domain/polling/carrier-failure-words.ts'
import { noPushSinceMs } from '../../../domain/polling/push-standing.ts'
import { type Past, SHOWN } from '../../../flow/admin/overview/overview.ts'
import { buttonLink, link, withQuery } from '../addresses.ts'
import { leftText } from '../carrier/carrier.page.ts'
import { refusalEvidence } from '../carrier/carrier-words.ts'
import { runbookLink } from '../docs/runbooks.ts'
import { html, type Markup, type Part } from '../html.ts'
import type { Visit } from '../page-route.ts'
import { icon } from '../parts.ts'
import { relativeTime, timeInSentence } from '../times.ts'
import { explainFailure, remedyOf } from '../webhooks/failure-words.ts'
import { sentenceOnPage } from '../words.ts'

interface Told {
  readonly title: Part
  readonly what: Part
  readonly todo: Part
  /** The kind of problem whose runbook helps. Absent: the kind of this problem. */
  readonly runbook?: Problem['kind']
}

/** How many webhooks in trouble get a card. One line counts the others. The overview reads the backlogs of only this many webhooks. */
const EXPLAINED = SHOWN.backlogs

export function problemSections(visit: Visit, situation: Situation & Past, problems: readonly Problem[]): Markup {
  const ofWebhooks = problems.filter((problem) => 'state' in problem)
  const beyond = new Set<Problem>(ofWebhooks.slice(EXPLAINED))
  const { to, person } = visit
  const more = `${counted(beyond.size, 'more webhook is', 'more webhooks are')} in trouble.`
  return html`${problems.filter((problem) => !beyond.has(problem)).map((problem, at) => problemSection(visit, situation, problem, at))}${
    beyond.size === 0
      ? null
      : html`<p>${more}${person.scope === 'admin' ? html` ${link(to`/webhooks`, 'All webhooks, trouble first')}` : null}</p>`
  }`
}

function problemSection(visit: Visit, situation: Situation & Past, problem: Problem, at: number): Markup {
  const { title, what, todo, runbook = problem.kind } = tell(visit, situation, problem)
  const kind = isWarning(problem) ? 'warn' : 'bad'
  return html`<section class="problem ${kind === 'warn' ? 'warn' : ''}" aria-labelledby="problem-${at}">
<h2 id="problem-${at}">${icon(kind, kind)}${title}</h2>
<div>${what}</div>
<div>${todo}${runbookLink(visit.to, runbook)}</div>
</section>
`
}

function tell(visit: Visit, situation: Situation & Past, problem: Problem): Told {
  const { nowMs, to, person } = visit
  const { pushes, carrier, webhook } = situation
  if ('concern' in problem) return tellPlainly(problem.concern, nowMs)
  switch (problem.kind) {
    case 'not_ready':
      return {
        title: 'The relay is not ready',
        what: html`<p>${sentenceOnPage(readableReason(problem.reason), nowMs)}.</p>`,
        todo: html`<p>The log says more. Mend the cause; the relay goes on by itself.</p>`,
      }
    case 'credentials_refused':
      return {
        title: 'The carrier refuses our password',
        what: html`<p>${refusalEvidence(carrier, nowMs)}</p><p>The relay makes no calls meanwhile. Pushes still come; apps are answered from the store.</p>`,
        todo: html`<ol><li>Correct <code>upstream.password</code>, then reload: <code>parcel-relay reload</code>.</li></ol>`,
      }
    case 'carrier_failing':
      return {
        title: html`The carrier fails to answer${carrier.breaker.sinceMs === undefined ? null : html` <small>since ${timeInSentence(carrier.breaker.sinceMs, nowMs)}</small>`}`,
        what: html`<p>The last failure: ${carrier.lastFailure === null ? 'unknown' : lastFailureText(carrier.lastFailure)}. The relay asks again in ${spanText(carrier.breaker.restMs)}.</p>`,
        todo: html`<ol><li>${carrierRemedy(carrier.lastFailure)}</li></ol>`,
      }
    case 'pushes_silent':
      if (areOnlyMisunderstood(situation)) return tellMisunderstood(visit, situation)
      return {
        title: html`No push${silence(pushes, nowMs)}`,
        what: html`<p>The carrier scans as usual: polls found ${countText(pushes.missedSincePush)} entries since then that no push brought${lastFoundOf(pushes, nowMs)}. Polls run at their full rate: ${leftText(carrier)}. ${UNHEARD_OF}</p>${misdirectedSincePush(
          situation,
        )
          .slice(0, MISDIRECTED_SHOWN)
          .map((one) => html`<p>${sentenceOnPage(describeMisdirected(one, webhook.path), nowMs)}</p>`)}${
          person.scope === 'admin' ? html`<div class="acts">${buttonLink(to`/carrier#pushes`, 'Show the evidence')}</div>` : null
        }`,
        todo: html`<ol>${
          misdirectedSincePush(situation).some(({ isSigned }) => isSigned)
            ? html`<li>Pushes seem to come to another path: have the carrier push to <code>https://YOUR-HOST${webhook.path}</code>, or set <code>webhook.path</code> to the path it uses and restart.</li>`
            : null
        }<li>Does ${person.scope === 'admin' ? link(to`/inbox/refusals`, 'the inbox') : 'the inbox'} show refused signatures since then? Then pushes come, but with another key than ours, or signed in another way: the page says which.</li>
<li>Ask the carrier to what address it pushes, and what answers it gets. The relay expects <code>POST https://YOUR-HOST${webhook.path}</code>, exactly this path; any other path gets 404.</li>
<li>From outside your network: <code>curl -i https://YOUR-HOST${webhook.path}</code>. The relay answers a GET with 405. After any other answer look at DNS, the firewall, the proxy and its certificate.</li>
<li>When pushes come again, ask the carrier to send the missed ones again, or for a list of the parcels that are new since then. The runbook says how to watch these.</li></ol>`,
      }
    case 'pushes_lossy':
    case 'silence_over':
    case 'pushes_refused':
      return tellPlainly(explainProblem(problem, situation, nowMs), nowMs)
    case 'endpoint_failing':
    case 'endpoint_disabled':
      return tellEndpoint(visit, situation, problem)
    case 'operator_unheard':
      return tellOperator(visit, situation, problem)
    case 'quarantined':
      return {
        title: `${counted(problem.count, 'push is', 'pushes are')} in quarantine`,
        what: html`<p>They are authentic, and the relay does not understand them. They are kept. A parcel that only they name is not polled.</p>${situation.held.length === 0 ? null : html`<p>${reasonsOf(situation, nowMs)}</p>`}${
          person.scope === 'admin' ? html`<div class="acts">${buttonLink(to`/inbox`, 'Open the inbox, by reason')}</div>` : null
        }`,
        todo: html`<ol>${SETTLE_QUARANTINE}</ol>`,
      }
    case 'disk_full':
      return tellFullDisk(problem.disk, situation, nowMs)
    case 'disk_low':
      return tellLowDisk(problem.disk, situation, nowMs)
    case 'backup_failing':
      return {
        title: html`No backup can be made <small>since ${timeInSentence(problem.sinceMs, nowMs)}</small>`,
        what: html`<p>${sentenceOnPage(problem.reason, nowMs)}.</p><p>The relay works. If its store were lost now, only older backups could be restored.</p>${
          person.scope === 'admin' ? html`<div class="acts">${buttonLink(to`/backups`, 'Backups')}</div>` : null
        }`,
        todo: html`<ol><li>Mend the folder of backups, or name another in <code>backup.directory</code>, then reload: <code>parcel-relay reload</code>.</li><li>Then make one.</li></ol>`,
      }
    case 'clock_doubted':
      return tellPlainly(explainClock(problem.doubt), nowMs)
    case 'settings_differ':
      return tellPlainly(explainProblem(problem, situation, nowMs), nowMs)
  }
}

/** Makes a card from an explanation in plain text, as `parcel-relay status` prints it. */
function tellPlainly({ title, evidence, todo }: Pick<Explanation, 'title' | 'evidence' | 'todo'>, nowMs: number): Told {
  return {
    title: sentenceOnPage(title, nowMs),
    what: html`${evidence.map((sentence) => html`<p>${sentenceOnPage(sentence, nowMs)}</p>`)}`,
    todo: html`<ol>${todo.map((step) => html`<li>${sentenceOnPage(step, nowMs)}</li>`)}</ol>`,
  }
}

function tellOperator({ nowMs, to, person }: Visit, situation: Situation, problem: Extract<Problem, { kind: 'operator_unheard' }>): Told {
  const told = tellPlainly(explainProblem(problem, situation, nowMs), nowMs)
  if (person.scope !== 'admin') return told
  const enable = html`<form method="post" action="${to`/events/enable`.path}"><button class="btn" type="submit">Enable it</button></form>`
  const acts = html`<div class="acts">${problem.state.disabled === null ? null : enable}${buttonLink(to`/events`, 'What happened')}</div>`
  return { ...told, what: html`${told.what}${acts}` }
}

/** Says since when no push has come: since the last push or, if the store was restored after that push, since the restore. */
function silence(pushes: Situation['pushes'], nowMs: number): Part {
  const sinceMs = noPushSinceMs(pushes)
  if (sinceMs === null) return null
  const last = pushes.restoredAtMs === null ? 'the last one came at' : 'the store was restored at'
  return html` for ${spanText(nowMs - sinceMs)} <small>${last} ${timeInSentence(sinceMs, nowMs)}</small>`
}

const SETTLE_QUARANTINE = html`<li>Ask the carrier whether it has changed its format, and whether it meant to.</li>
<li>If the carrier returns to its old format, fetch the parcels that the pushes name, with <code>parcel-relay inbox --refresh</code>, and dismiss the pushes.</li>
<li>If the new format stays, install a version of the relay that reads it, then reprocess them.</li>`

/** Makes the card for pushes that come, but are all in quarantine. */
function tellMisunderstood({ nowMs, to, person }: Visit, { pushes, carrier, held }: Situation): Told {
  const [newest] = held
  const sinceMs = noPushSinceMs(pushes)
  return {
    title: html`No push is understood${sinceMs === null ? null : html` <small>since ${timeInSentence(sinceMs, nowMs)}</small>`}`,
    what: html`<p>The carrier has pushed since then, the last time ${newest === undefined ? null : relativeTime(newest.last.receivedAtMs, nowMs)}, but what came is in quarantine. Polls found ${countText(pushes.missedSincePush)} entries since then that no push brought${lastFoundOf(pushes, nowMs)}. They run at their full rate: ${leftText(carrier)}. ${UNHEARD_OF}</p>${
      person.scope === 'admin'
        ? html`<div class="acts">${buttonLink(to`/inbox`, 'Open the inbox, by reason')}${buttonLink(to`/carrier#pushes`, 'Show the evidence')}</div>`
        : null
    }`,
    todo: html`<ol><li>Open one of them: the page marks the bytes that are wrong.</li>
${SETTLE_QUARANTINE}
<li>If nothing more comes although polls find entries, the pushes have stopped as well.</li></ol>${runbookLink(to, 'pushes_silent')}`,
    runbook: 'quarantined',
  }
}

function reasonsOf({ held }: Situation, nowMs: number): Part {
  return held.slice(0, 3).map(({ reason, count, last }, at) => {
    const words = reason === null ? 'expired' : reasonText(reason)
    return html`${at === 0 ? null : ' '}${words}: ${countText(count)}, the last one ${relativeTime(last.receivedAtMs, nowMs)}.`
  })
}

function lastFoundOf({ missed }: Situation['pushes'], nowMs: number): Part {
  return missed.lastFoundAtMs === null ? null : html`, the last one ${relativeTime(missed.lastFoundAtMs, nowMs)}`
}

function tellFullDisk(disk: DiskRoom, { pushes }: Situation, nowMs: number): Told {
  const missingBytes = disk.freeBytesMin - disk.freeBytes
  return {
    title: 'The store’s disk is full: pushes are refused',
    what: html`<p>${bytesText(disk.freeBytes)} are free; the relay needs ${bytesText(disk.freeBytesMin)}. It answers pushes with 503, and does not poll. A carrier gives up sending a push again after some time. Once there is room, polls find the entries of such pushes, if the relay knows their parcels. Apps are served. Webhooks are too, while the store can write down what was sent; with no byte free their events wait, and none is lost.</p>${
      pushes.lastPushAtMs === null || pushes.restoredAtMs !== null
        ? null
        : html`<p>The last push with something new was accepted ${relativeTime(pushes.lastPushAtMs, nowMs)}.</p>`
    }`,
    todo: html`<ol><li>Free ${bytesText(missingBytes)} or more on that disk, or ask the people who run the machine to. ${usageOf(disk)}</li><li>Do not restart the relay before: without room it does not start.</li><li>With room it goes on by itself. Ask the carrier to send again what was refused.</li></ol>`,
  }
}

function usageOf({ freeBytes, totalBytes, storeBytes, path }: DiskRoom): Markup {
  const usedBytes = totalBytes - freeBytes
  const others = storeBytes < usedBytes / 2 ? ': something else fills it' : ''
  return html`On the disk of <code>${path}</code> ${bytesText(usedBytes)} of ${bytesText(totalBytes)} are used, ${bytesText(storeBytes)} by the store${others}.`
}

function tellLowDisk(disk: DiskRoom, { traffic }: Past, nowMs: number): Told {
  const { freeBytes, freeBytesMin } = disk
  const atMs = refusesFromMs(disk, traffic.disk, nowMs)
  return {
    title: html`${bytesText(freeBytes)} are free on the store’s disk${atMs === null ? null : html` <small>pushes stop at about ${timeInSentence(atMs, nowMs)}, if it goes on like today</small>`}`,
    what: html`<p>Below ${bytesText(freeBytesMin)} pushes are answered with 503. Nothing is lost now.</p>`,
    todo: html`<ol><li>Make room, or ask the people who run the machine to. ${usageOf(disk)}</li></ol>`,
  }
}

function tellEndpoint(
  visit: Visit,
  { backlogs, failures }: Situation,
  { kind, state }: Extract<Problem, { kind: 'endpoint_failing' | 'endpoint_disabled' }>,
): Told {
  const { nowMs, to, person } = visit
  const { id, name, url } = state.endpoint
  const [backlog, failure] = [backlogs.get(id), failures.get(id)]
  const words = failure === undefined ? null : wordFailure(failure, url, extentOf(state, failure))
  const remedy = words === null ? null : html`<li>${remedyOf(visit, words, { id, origin: state.origin })}</li>`
  const isFailing = kind === 'endpoint_failing'
  const since =
    isFailing && state.health.failingSinceMs !== null
      ? html` <small>since ${timeInSentence(state.health.failingSinceMs, nowMs)}</small>`
      : null
  const waiting = backlog === undefined ? 'Its events wait.' : `${counted(backlog.waiting, 'event waits', 'events wait')}.`
  const disabledAtMs = nowMs + Math.max(0, FAILING_MAX_MS - state.health.failedForMs)
  const retry = html`<form method="post" action="${to`/webhooks/${id}/retry`.path}"><button class="btn" type="submit" aria-label="Retry now: ${name}">Retry now</button></form>`
  return {
    title: html`${name} ${isFailing ? 'fails' : state.disabled === 'gone' ? 'answered 410 Gone and is disabled' : 'failed for 120 h and is disabled'}${since}`,
    what: html`${words === null ? null : html`<p>${explainFailure(words)}</p>`}<p>${waiting} None is lost${isFailing ? html`: they are sent in order once it answers with 2xx. If every attempt fails until ${timeInSentence(disabledAtMs, nowMs)}, the relay disables the webhook, and its events keep waiting` : null}.</p>${
      person.scope === 'admin'
        ? html`<div class="acts">${isFailing ? retry : null}${buttonLink(to`/webhooks/${id}`, `Open ${name}`)}${buttonLink(withQuery(to`/deliveries`, { endpoint: id }), 'Its deliveries')}</div>`
        : null
    }`,
    todo: isFailing
      ? html`<ol>${remedy}<li>When it is mended, press “Retry now”.</li></ol>`
      : html`<ol>${remedy}<li>Ask the people who run ${name} to mend it, then enable it.</li><li>If nobody needs it any more, disable it yourself or remove it.</li></ol>`,
  }
}
