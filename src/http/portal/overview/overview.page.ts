import { type DiskRoom, isDiskLow, refusesFromMs } from '../../../domain/admin/disk-room.ts'
import {
  areOnlyMisunderstood,
  doPollsFindAll,
  isNew,
  isWarning,
  type Problem,
  problemsOf,
  type Situation,
} from '../../../domain/admin/verdict.ts'
import { FAILING_MAX_MS } from '../../../domain/delivery/delivery.ts'
import { type Past, SHOWN } from '../../../flow/admin/overview.ts'
import { buttonLink, link, withQuery } from '../addresses.ts'
import { answerMark, leftText, pushMark } from '../carrier/carrier.page.ts'
import { failureText, refusalEvidence } from '../carrier/carrier-words.ts'
import { runbookLink } from '../docs/runbooks.ts'
import { eventTable } from '../events.ts'
import { html, type Markup, type Part } from '../html.ts'
import { reasonInTable } from '../inbox/quarantine-words.ts'
import { renderPage } from '../layout.ts'
import type { Visit } from '../page-route.ts'
import { asOfLine, bytesText, counted, countText, headline, icon, island, stateMark, table } from '../parts.ts'
import { relativeTime, spanText, timeInSentence } from '../times.ts'
import { explainFailure, refusesAll } from '../webhooks/failure-words.ts'
import { trafficSection } from './traffic.ts'

/** The first page: does everything work, and if not, what is wrong, since when, and who must do what. */
export function overviewPage(visit: Visit, situation: Situation & Past): string {
  const { nowMs, to, person } = visit
  const problems = problemsOf(situation)
  const title =
    isNew(situation) && problems.length === 0
      ? 'Waiting for the first push'
      : problems.length === 0
        ? 'Everything works'
        : counted(problems.length, 'problem', 'problems')
  const mark = problems.length > 0 ? icon('bad', 'bad') : isNew(situation) ? icon('none') : icon('ok', 'ok')
  const main = html`${headline({ title: html`${mark}${title}`, lead: leadOf(situation, problems, nowMs), asOf: asOfLine(nowMs, to`/`, true), isLive: true })}
${island('problems', problemSections(visit, situation, problems))}
${island(
  'checks',
  html`<h2>${problems.length === 0 ? 'Checks' : 'What works, and what can wait'}</h2>
${checks(visit, situation)}`,
)}
${trafficSection(situation.traffic)}
<h2>What happened</h2>
${island('happened', eventTable(situation.happened, nowMs))}
${person.scope === 'admin' && situation.happened.length > 0 ? html`<p>${link(to`/events`, 'All that happened')}</p>` : null}`
  return renderPage(visit, { title: `${title} · Overview`, section: 'overview', person, main })
}

function leadOf(situation: Situation, problems: readonly Problem[], nowMs: number): Part {
  const { pushes, carrier } = situation
  if (problems.some(({ kind }) => kind === 'not_ready')) return 'Pushes are answered with 503, so the carrier sends them again.'
  if (pushes.health === 'silent' && !doPollsFindAll(situation))
    return 'The relay is deaf: no push comes, and the carrier cannot be asked. What it scans now is found later.'
  if (problems.length > 0)
    return doPollsFindAll(situation)
      ? 'Nothing is lost: polls find what no push brings, and what a webhook refuses waits for it.'
      : 'What a webhook refuses waits for it.'
  if (isNew(situation)) return 'The relay is ready. It knows no parcel yet.'
  return html`${pushes.lastPushAtMs === null ? 'No push has come yet.' : html`The last push came ${relativeTime(pushes.lastPushAtMs, nowMs)}.`} ${
    carrier.lastAnswerAtMs === null ? null : html`The carrier answered ${relativeTime(carrier.lastAnswerAtMs, nowMs)}.`
  }`
}

interface Told {
  readonly title: Part
  readonly what: Part
  readonly todo: Part
  /** The problem whose runbook helps; absent: its own. */
  readonly runbook?: Problem['kind']
}

/** So many webhooks are explained; of the others there is one line. As many as what waits is counted for. */
const EXPLAINED = SHOWN.backlogs

function problemSections(visit: Visit, situation: Situation & Past, problems: readonly Problem[]): Markup {
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
  const kind = isWarning(problem.kind) ? 'warn' : 'bad'
  return html`<section class="problem ${kind === 'warn' ? 'warn' : ''}" aria-labelledby="problem-${at}">
<h2 id="problem-${at}">${icon(kind, kind)}${title}</h2>
<div>${what}</div>
<div>${todo}${runbookLink(visit.to, runbook)}</div>
</section>
`
}

function tell(visit: Visit, situation: Situation & Past, problem: Problem): Told {
  const { nowMs, to, person } = visit
  const { pushes, carrier } = situation
  switch (problem.kind) {
    case 'not_ready':
      if (situation.disk !== null && situation.disk.freeBytes < situation.disk.freeBytesMin)
        return tellFullDisk(situation, situation.disk, nowMs)
      return {
        title: 'The relay is not ready',
        what: html`<p>${problem.reason}</p>`,
        todo: html`<p>The log says more. Mend the cause; the relay goes on by itself.</p>`,
      }
    case 'credentials_refused':
      return {
        title: 'The carrier refuses our password',
        what: html`<p>${refusalEvidence(carrier, nowMs)}</p><p>No call is made meanwhile. Pushes still come; apps are answered from the store.</p>`,
        todo: html`<ol><li>Correct <code>upstream.password</code>, and send SIGHUP.</li></ol>`,
      }
    case 'carrier_failing':
      return {
        title: 'The carrier fails to answer',
        what: html`<p>The last failure: ${carrier.lastFailure === null ? 'unknown' : failureText(carrier.lastFailure.reason)}. The relay asks again in ${spanText(carrier.breaker.restMs)}.</p>`,
        todo: html`<ol><li>Look whether the carrier says that it is down, and whether the way there is open.</li></ol>`,
      }
    case 'pushes_silent':
      if (areOnlyMisunderstood(situation)) return tellMisunderstood(visit, situation)
      return {
        title: html`No push${pushes.lastPushAtMs === null ? null : html` for ${spanText(nowMs - pushes.lastPushAtMs)} <small>the last one came at ${timeInSentence(pushes.lastPushAtMs, nowMs)}</small>`}`,
        what: html`<p>The carrier scans as usual: polls found ${countText(pushes.missedSincePush)} entries since then that no push brought${lastFoundOf(pushes, nowMs)}. Polls run at their full rate: ${leftText(carrier)}.</p>${
          person.scope === 'admin' ? html`<div class="acts">${buttonLink(to`/carrier#pushes`, 'Show the evidence')}</div>` : null
        }`,
        todo: html`<ol><li>From outside your network ask the address that the carrier pushes to, such as <code>curl -i https://YOUR-HOST/webhooks/status</code>: the relay answers a GET with 405. After any other answer look at DNS, the proxy and its certificate.</li>
<li>Does ${person.scope === 'admin' ? link({ path: `${to`/inbox`.path}#refused` }, 'the inbox') : 'the inbox'} show refused signatures since then? Then pushes come, signed with another key than ours.</li>
<li>In the carrier’s portal: is our webhook enabled, with this address?</li></ol>`,
      }
    case 'endpoint_failing':
    case 'endpoint_disabled':
      return tellEndpoint(visit, situation, problem)
    case 'quarantined':
      return {
        title: `${counted(problem.count, 'push is', 'pushes are')} in quarantine`,
        what: html`<p>They are authentic, and the relay does not understand them. They are kept.</p>${situation.held.length === 0 ? null : html`<p>${reasonsOf(situation, nowMs)}</p>`}${
          person.scope === 'admin' ? html`<div class="acts">${buttonLink(to`/inbox`, 'Open the inbox, by reason')}</div>` : null
        }`,
        todo: html`<p>Look whether the carrier has changed its format.</p>`,
      }
    case 'disk_low':
      return tellDisk(situation, nowMs)
    case 'settings_differ':
      return {
        title: 'Replicas run with different settings',
        what: html`<p>They share one store, and act differently on it.</p>`,
        todo: html`<ol><li>Give all the same config file, then restart those that differ.</li></ol>`,
      }
  }
}

/** The carrier pushes as before, and the relay understands nothing of it: another matter than a way that is closed. */
function tellMisunderstood({ nowMs, to, person }: Visit, { pushes, carrier, held }: Situation): Told {
  const [newest] = held
  return {
    title: html`No push is understood${pushes.lastPushAtMs === null ? null : html` <small>since ${timeInSentence(pushes.lastPushAtMs, nowMs)}</small>`}`,
    what: html`<p>The carrier has pushed since then, the last time ${newest === undefined ? null : relativeTime(newest.last.receivedAtMs, nowMs)}, but what came is in quarantine. Polls found ${countText(pushes.missedSincePush)} entries since then that no push brought${lastFoundOf(pushes, nowMs)}. They run at their full rate: ${leftText(carrier)}.</p>${
      person.scope === 'admin'
        ? html`<div class="acts">${buttonLink(to`/inbox`, 'Open the inbox, by reason')}${buttonLink(to`/carrier#pushes`, 'Show the evidence')}</div>`
        : null
    }`,
    todo: html`<ol><li>Open one of them: the page marks the bytes that are wrong.</li>
<li>Ask the carrier whether it has changed its format. If it has, the relay needs an update.</li></ol>`,
    runbook: 'quarantined',
  }
}

/** The newest reasons, with how many pushes each has. */
function reasonsOf({ held }: Situation, nowMs: number): Part {
  return held.slice(0, 3).map(({ reason, count, last }, at) => {
    const words = reason === null ? 'expired' : reasonInTable(reason)
    return html`${at === 0 ? null : ' '}${words}: ${countText(count)}, the last one ${relativeTime(last.receivedAtMs, nowMs)}.`
  })
}

function lastFoundOf({ missed }: Situation['pushes'], nowMs: number): Part {
  return missed.lastFoundAtMs === null ? null : html`, the last one ${relativeTime(missed.lastFoundAtMs, nowMs)}`
}

function tellFullDisk({ pushes }: Situation, disk: DiskRoom, nowMs: number): Told {
  const missingBytes = disk.freeBytesMin - disk.freeBytes
  return {
    title: 'The store’s disk is full: pushes are refused',
    what: html`<p>${bytesText(disk.freeBytes)} are free; the relay needs ${bytesText(disk.freeBytesMin)}. It answers pushes with 503, so the carrier sends them again for as long as it cares to, and it does not poll. What is not pushed again, polls find once there is room. Apps and webhooks are served.</p>${
      pushes.lastPushAtMs === null ? null : html`<p>The last push with news was taken ${relativeTime(pushes.lastPushAtMs, nowMs)}.</p>`
    }`,
    todo: html`<ol><li>Have whoever runs the machine free ${bytesText(missingBytes)} or more. ${usageOf(disk)}</li><li>The relay then goes on by itself.</li></ol>`,
    runbook: 'disk_low',
  }
}

/** Where the disk is, and who fills it. */
function usageOf({ freeBytes, totalBytes, storeBytes, path }: DiskRoom): Markup {
  const usedBytes = totalBytes - freeBytes
  const others = storeBytes < usedBytes / 2 ? ': something else fills it' : ''
  return html`On the disk of <code>${path}</code> ${bytesText(usedBytes)} of ${bytesText(totalBytes)} are used, ${bytesText(storeBytes)} by the store${others}.`
}

function tellDisk({ disk, traffic }: Situation & Past, nowMs: number): Told {
  if (disk === null) return { title: 'The disk is low', what: null, todo: null }
  const { freeBytes, freeBytesMin } = disk
  const atMs = refusesFromMs(disk, traffic.disk, nowMs)
  return {
    title: html`${bytesText(freeBytes)} are free on the store’s disk${atMs === null ? null : html` <small>pushes stop at about ${timeInSentence(atMs, nowMs)}, if it goes on like today</small>`}`,
    what: html`<p>Below ${bytesText(freeBytesMin)} pushes are answered with 503, so the carrier sends them again later. Nothing is lost now.</p>`,
    todo: html`<ol><li>Have whoever runs the machine make room. ${usageOf(disk)}</li></ol>`,
  }
}

function tellEndpoint(
  { nowMs, to, person }: Visit,
  { backlogs, failures }: Situation,
  { kind, state }: Extract<Problem, { kind: 'endpoint_failing' | 'endpoint_disabled' }>,
): Told {
  const { id, name, url } = state.endpoint
  const [backlog, failure] = [backlogs.get(id), failures.get(id)]
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
    what: html`${failure === undefined ? null : html`<p>${explainFailure(failure, url, refusesAll(state, failure))}</p>`}<p>${waiting} None is lost${isFailing ? html`: they are sent in order once it answers with 2xx. If it only fails until ${timeInSentence(disabledAtMs, nowMs)}, it is disabled, and they go on waiting` : null}.</p>${
      person.scope === 'admin'
        ? html`<div class="acts">${isFailing ? retry : null}${buttonLink(to`/webhooks/${id}`, `Open ${name}`)}${buttonLink(withQuery(to`/deliveries`, { endpoint: id }), 'Its deliveries')}</div>`
        : null
    }`,
    todo: isFailing
      ? html`<ol><li>Give its answer to whoever runs ${name}.</li><li>When it is mended, press “Retry now”.</li></ol>`
      : html`<ol><li>Decide: enable it when it is mended, or disable or remove it for good.</li></ol>`,
  }
}

function checks({ to, person, nowMs }: Visit, situation: Situation): Markup {
  const { carrier, pushes, endpoints, counts, disk, replicas } = situation
  // Nothing that came could be kept.
  const isDown = situation.notReady.length > 0
  const isAdmin = person.scope === 'admin'
  const delivering = endpoints.filter(({ disabled, health }) => disabled === null && health.probing === null).length
  const disabled = endpoints.filter((one) => one.disabled !== null).length
  const failing = endpoints.length - delivering - disabled
  return table({
    label: 'Checks',
    columns: [{ title: 'Check' }, { title: 'State' }, { title: 'Evidence' }],
    rows: [
      [
        'Pushes',
        isDown ? stateMark('bad', 'refused') : areOnlyMisunderstood(situation) ? stateMark('bad', 'not understood') : pushMark(pushes),
        pushes.lastPushAtMs === null ? 'None yet.' : html`The last one with news came ${relativeTime(pushes.lastPushAtMs, nowMs)}.`,
      ],
      [
        'Carrier',
        isDown ? stateMark('off', 'not polled') : answerMark(carrier),
        html`${leftText(carrier)}.${isAdmin ? html` ${link(to`/carrier`, 'Carrier')}` : null}`,
      ],
      [
        'Webhooks',
        failing > 0
          ? stateMark('bad', `${failing} failing`)
          : endpoints.length === 0
            ? stateMark('none', 'none yet')
            : stateMark('ok', `${delivering} deliver`),
        html`${disabled === 0 ? 'None is disabled.' : `${countText(disabled)} disabled.`}${isAdmin ? html` ${link(to`/webhooks`, 'Webhooks')}` : null}`,
      ],
      [
        'Inbox',
        counts.quarantined === 0 ? stateMark('ok', 'all understood') : stateMark('warn', `${countText(counts.quarantined)} quarantined`),
        counts.quarantined === 0 ? 'No push is in quarantine.' : 'Authentic pushes that the relay does not understand. They are kept.',
      ],
      [
        'Parcels',
        stateMark(counts.parcels === 0 ? 'none' : 'ok', `${countText(counts.parcels)} known`),
        html`${counted(counts.watched, 'is', 'are')} checked, ${counted(counts.overdue, 'is', 'are')} due now. ${link(to`/parcels`, 'Parcels')}`,
      ],
      ...(disk === null
        ? []
        : [
            [
              'Disk',
              disk.freeBytes < disk.freeBytesMin
                ? stateMark('bad', 'full')
                : isDiskLow(disk)
                  ? stateMark('warn', 'low')
                  : stateMark('ok', 'has room'),
              `${bytesText(disk.freeBytes)} are free. The store takes ${bytesText(disk.storeBytes)}.`,
            ],
          ]),
      ['Replicas', stateMark('ok', countText(replicas.length)), replicas.map(({ name }) => name).join(', ')],
    ].map((row) => [...row]),
  })
}
