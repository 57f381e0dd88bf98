import type { Span } from './mixed-jobs.ts'

const DAY = 86_400_000
const from = (year: number, month: number, date: number, days: number): Span => {
  const start = Date.UTC(year, month - 1, date) + 17_123
  return { start, end: start + days * DAY }
}

/** Weeks in which clocks change, and four zones each. */
export const SPANS: readonly { span: Span; zones: readonly string[] }[] = [
  {
    span: from(2026, 3, 1, 45),
    zones: ['Europe/Berlin', 'Australia/Lord_Howe', 'America/New_York', 'Africa/Casablanca'],
  },
  { span: from(2026, 9, 25, 42), zones: ['Antarctica/Troll', 'Pacific/Chatham', 'Asia/Kathmandu', 'Europe/London'] },
  // Samoa left 30 December 2011 out.
  { span: from(2011, 12, 15, 30), zones: ['Pacific/Apia', 'UTC', 'America/Havana', 'Asia/Tokyo'] },
]
