// SPDX-License-Identifier: Apache-2.0

'use strict'

// Names and reasons come from others: nothing here is read as HTML.
const at = id => document.getElementById(id)
const when = time => time.slice(0, 19) + 'Z'
let token = ''
let shown = '' // the time of the look that is shown

function short (ms) {
  if (ms < 0) return 'no end'
  if (ms === 0) return '-'
  if (ms < 1000) return ms + 'ms'
  const s = Math.floor(ms / 1000)
  const two = n => String(n).padStart(2, '0')
  if (s < 60) return (Math.floor(ms / 100) / 10).toFixed(1) + 's'
  if (s < 3600) return Math.floor(s / 60) + 'm' + two(s % 60) + 's'
  if (s < 48 * 3600) return Math.floor(s / 3600) + 'h' + two(Math.floor(s / 60) % 60) + 'm'
  return Math.floor(s / 86400) + 'd' + two(Math.floor(s / 3600) % 24) + 'h'
}

function who (w) {
  if (w.host) return `${w.host} pid ${w.pid}` + (w.label ? ` (${w.label})` : '')
  return w.owner ? JSON.stringify(w.owner) : '-'
}

function holder (l) {
  if (l.kind) return `${l.holds} holder${l.holds === 1 ? '' : 's'} (${l.kind})`
  if (l.held) return who(l)
  if (l.kept_until) return 'nobody: kept until ' + when(l.kept_until)
  return 'nobody: the lease has ended'
}

function fill (id, rows) {
  at(id).replaceChildren(...rows.map(cells => {
    const row = document.createElement('tr')
    for (const text of cells) row.insertCell().textContent = text
    return row
  }))
}

function show (look) {
  at('problem').textContent = look.errors ? 'not complete: ' + look.errors.join('; ') : ''
  if (shown === look.at) return // what somebody has selected stays so
  shown = look.at
  const least = look.errors ? 'at least ' : ''
  const some = look.more ? `, the first ${look.locks.length} are shown` : ''
  at('totals').textContent = `${least}${look.total} locks${some}: ${look.held} held, ${look.waiting} waiting, ` +
    `${look.hand_overs_per_second.toFixed(1)} hand-overs/s, at ${when(look.at)}`
  fill('locks', look.locks.map(l => [l.name, holder(l), short(l.held_ms), short(l.remaining_ms), l.token || '-', l.waiters]))
  for (const row of at('locks').rows) row.classList.toggle('warn', row.lastChild.textContent !== '0')
  fill('losses', look.losses.map(l => [when(l.at), l.name, who(l), l.token,
    l.cause + (l.reason ? ': ' + l.reason : '')]))
}

async function look () {
  let reply
  try {
    reply = await fetch('look', { headers: token ? { Authorization: 'Bearer ' + token } : {} })
    at('ask').hidden = reply.status !== 401
    if (reply.ok) show(await reply.json())
    else if (reply.status !== 503) at('problem').textContent = await reply.text() // 503: the first look takes long
  } catch (e) {
    at('problem').textContent = 'holdfast ui does not answer: ' + e.message
  }
  if (!reply || reply.status !== 401) setTimeout(look, 1000)
}

at('ask').addEventListener('submit', e => {
  e.preventDefault()
  token = at('token').value
  look()
})

look()
