import type { JobInput } from '../../src/intake/job-input.ts'
import type { Instant } from '../../src/runtime/clock.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import { type CronShape, type Dst, timesOfCron } from './cron-shape.ts'
import { cronShape, type Dice } from './cron-shapes.ts'
import { exclusion } from './exclusions.ts'
import { type IntervalShape, textOfInterval, timesOfInterval } from './interval-shape.ts'
import { WallClock } from './wall-clock.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Half-hour changes, a change of two hours, one in Ramadan, offsets of 45 minutes, and whole hours of both hemispheres. */
export const ZONES = [
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Africa/Casablanca',
  'Antarctica/Troll',
  'Pacific/Chatham',
  'Asia/Kathmandu',
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'America/St_Johns',
  'America/Sao_Paulo',
  'America/Santiago',
  'America/Havana',
  'Africa/Cairo',
  'Asia/Kolkata',
  'Asia/Tokyo',
  'Asia/Beirut',
  'Australia/Adelaide',
  'Pacific/Kiritimati',
] as const

/** What a job says about its times, and when that means it fires: by brute force, from what was made up. */
export interface Rhythm {
  input: JobInput
  /** All nominal times in [from, to). */
  times(from: Instant, to: Instant): Instant[]
}

export interface MixedJob extends Rhythm {
  /** Those of the whole span. */
  inSpan: Instant[]
}

export interface Span {
  start: Instant
  end: Instant
}

/** Makes jobs of all kinds from one seed. */
export class MixedJobs {
  readonly #span: Span
  readonly #random: Random
  readonly #walls = new Map<string, WallClock>()
  readonly #dice: Dice

  constructor(seed: number, span: Span) {
    this.#span = span
    this.#random = seededRandom(seed)
    const below = (limit: number) => Math.floor(this.#random.float() * limit)
    this.#dice = { below, of: (items) => items[below(items.length)] as (typeof items)[number] }
  }

  get dice(): Dice {
    return this.#dice
  }

  /** `often`: daily and more; `seldom`: weekly, monthly, yearly. */
  next(pace: 'often' | 'seldom', timezone: string): MixedJob {
    for (;;) {
      const made = this.#make(pace, timezone)
      const inSpan = made.times(this.#span.start, this.#span.end)
      // One that never fires is refused at creation.
      if (inSpan.length > 0) return { ...made, inSpan }
    }
  }

  #make(pace: 'often' | 'seldom', timezone: string): Rhythm {
    const dice = this.#dice
    const bounded = this.#withBounds(dice.below(10) < 2 ? this.#interval(timezone, pace) : this.#cron(timezone, pace))
    return dice.below(6) === 0 ? this.#excluding(bounded, timezone) : bounded
  }

  #wallOf(zone: string): WallClock {
    let wall = this.#walls.get(zone)
    if (wall === undefined) {
      wall = new WallClock(zone, this.#span.start - 40 * DAY, this.#span.end + 40 * DAY)
      this.#walls.set(zone, wall)
    }
    return wall
  }

  #cron(timezone: string, pace: 'often' | 'seldom'): Rhythm {
    const dice = this.#dice
    const shapes = Array.from({ length: dice.below(5) === 0 ? 2 + dice.below(2) : 1 }, () => cronShape(dice, pace))
    const dst = dice.below(6) === 0 ? dstPolicy(dice) : undefined
    const wall = this.#wallOf(timezone)
    return {
      input: { cron: textsOf(shapes), timezone, ...(dst === undefined ? {} : { dst }) },
      times: (from, to) =>
        united(shapes.map((shape) => timesOfCron(shape, wall, { from, to, ...(dst === undefined ? {} : { dst }) }))),
    }
  }

  /** The first fire time is given, so that nobody has to ask when the job was created. */
  #interval(timezone: string, pace: 'often' | 'seldom'): Rhythm {
    const dice = this.#dice
    const shape = dice.of(pace === 'often' ? OFTEN : SELDOM)
    const wall = this.#wallOf(timezone)
    const sunday = sundayAfter(this.#span.start) + dice.below(8) * 7 * DAY
    const first = wall.instantsOf(sunday + 2.5 * HOUR)[0] ?? wall.afterGap(sunday + 2.5 * HOUR)
    return {
      input: { every: textOfInterval(shape), timezone, startAt: new Date(first) },
      times: (from, to) => timesOfInterval(shape, wall, { first, from, to }),
    }
  }

  #withBounds({ input, times }: Rhythm): Rhythm {
    const dice = this.#dice
    const { start, end } = this.#span
    const startAt = input.startAt === undefined && dice.below(8) === 0 ? start + dice.below(120) * DAY : undefined
    const endAt = dice.below(8) === 0 ? end - dice.below(120) * DAY : undefined
    const bounds = {
      ...(startAt === undefined ? {} : { startAt: new Date(startAt) }),
      ...(endAt === undefined ? {} : { endAt: new Date(endAt) }),
    }
    return {
      input: { ...input, ...bounds },
      times: (from, to) => times(Math.max(from, startAt ?? from), Math.min(to, endAt ?? to)),
    }
  }

  #excluding({ input, times }: Rhythm, timezone: string): Rhythm {
    const wall = this.#wallOf(timezone)
    const { exclude, isOut } = exclusion(this.#dice, this.#span)
    return {
      input: { ...input, exclude },
      times: (from, to) => times(from, to).filter((at) => !isOut(wall.localOf(at))),
    }
  }
}

const OFTEN: readonly IntervalShape[] = [
  { kind: 'elapsed', unit: 'H', count: 12 },
  { kind: 'elapsed', unit: 'M', count: 720 },
  { kind: 'calendar', unit: 'D', count: 1 },
]
const SELDOM: readonly IntervalShape[] = [
  { kind: 'elapsed', unit: 'H', count: 168 },
  { kind: 'elapsed', unit: 'S', count: 604_800 },
  { kind: 'calendar', unit: 'W', count: 2 },
  { kind: 'calendar', unit: 'D', count: 21 },
  { kind: 'calendar', unit: 'M', count: 1 },
]

const sundayAfter = (at: Instant): number => (Math.ceil((at / DAY + 4) / 7) * 7 - 4) * DAY

function dstPolicy(dice: Dice): Dst {
  return { gap: dice.of(['after', 'skip']), overlap: dice.of(['first', 'last', 'both']) }
}

function textsOf(shapes: readonly CronShape[]): string | string[] {
  const texts = shapes.map(({ text }) => text)
  return texts.length === 1 ? (texts[0] as string) : texts
}

const united = (lists: readonly Instant[][]): Instant[] => [...new Set(lists.flat())].sort((a, b) => a - b)
