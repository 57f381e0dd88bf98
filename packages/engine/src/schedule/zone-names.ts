import { nearestName } from '../job/nearest-name.ts'
import { notUnderstood, shown } from './not-understood.ts'

/**
 * Names of the IANA data that are not of the form `Area/City`. The runtime takes more: abbreviations that mean something
 * else to most people (BST is Dhaka there, AST Anchorage), which are refused.
 */
const PLAIN_NAMES = new Set(
  [
    'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel',
    'Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey',
    'UCT UTC Universal W-SU WET Zulu',
  ].flatMap((line) => line.toLowerCase().split(' ')),
)
/** These were in the IANA data once, or never. */
const GONE = /^(systemv\/.*|us\/pacific-new|canada\/east-saskatchewan)$/

export function isIanaName(name: string): boolean {
  const lower = name.toLowerCase()
  return /^[a-z]/.test(lower) && (lower.includes('/') ? !GONE.test(lower) : PLAIN_NAMES.has(lower))
}

/** What people mean by these differs, so several are named and none is taken. */
const ABBREVIATIONS: Record<string, readonly string[]> = {
  AST: ['America/Halifax', 'Asia/Riyadh'],
  BST: ['Europe/London', 'Asia/Dhaka'],
  CST: ['America/Chicago', 'Asia/Shanghai'],
  ECT: ['America/Guayaquil', 'Europe/Paris'],
  IST: ['Asia/Kolkata', 'Asia/Jerusalem', 'Europe/Dublin'],
  JST: ['Asia/Tokyo'],
  NST: ['America/St_Johns'],
  PST: ['America/Los_Angeles', 'Asia/Manila'],
  SST: ['Pacific/Pago_Pago', 'Asia/Singapore'],
}

export function unknownZone(name: string): Error {
  const offset = /^(?:UTC|GMT)([+-])0?(\d{1,2})(?::?00)?$/i.exec(name)
  if (offset !== null && Number(offset[2]) <= (offset[1] === '+' ? 14 : 12)) return offsetZone(name, offset)
  const meant = ABBREVIATIONS[name.toUpperCase()]
  if (meant !== undefined) {
    const choice = meant.map((one) => JSON.stringify(one)).join(' or ')
    return notUnderstood(`there is no time zone ${shown(name)}: abbreviations are ambiguous, use ${choice}`, meant[0])
  }
  const names = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const wanted = name.toLowerCase().replaceAll(' ', '_')
  const city = names.find((other) => other.toLowerCase().split('/').at(-1) === wanted)
  const suggestion = city ?? nearestName(name, names)
  const hint = suggestion === undefined ? ': use an IANA name such as "Europe/Berlin"' : ''
  return notUnderstood(`there is no time zone ${shown(name)}${hint}`, suggestion)
}

function offsetZone(name: string, [, sign, digits]: RegExpExecArray): Error {
  const hours = Number(digits)
  if (hours === 0) return notUnderstood(`there is no time zone ${shown(name)}`, 'UTC')
  const zone = `Etc/GMT${sign === '+' ? '-' : '+'}${hours}`
  const side = sign === '+' ? 'ahead of' : 'behind'
  const why = `${zone} is ${hours} hours ${side} UTC (the sign of these names is turned round)`
  return notUnderstood(`there is no time zone ${shown(name)}: ${why}`, zone)
}
