import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AddressGuard } from './address-guard.ts'
import { TargetUrls } from './target-url.ts'

const read = (text: string): { origin: string; path: string } => {
  try {
    const { origin, pathname, search } = new URL(text)
    return { origin, path: pathname + search }
  } catch {
    return { origin: '', path: '' }
  }
}

const PIECES = [
  ...'/\\?#:@.%~-_aB7\'"<|^`{} \t\n\0ä日😀+&=;,()*!$[]',
  ...'http:// https:// HTTP:// http:/ http:\\\\ ftp:// // .. /./ /../ %2e %2E%2e %2f %zz'.split(' '),
  ...'example.com EXAMPLE.com 127.0.0.1 0x7f.1 [::1] :80 :443 :8080 user:pass@ ex%61mple.com'.split(' '),
]

test('a URL is understood as the platform understands it, however it is written', () => {
  const urls = new TargetUrls(new AddressGuard({ allowPrivateTargets: true }))
  const piece = fc.constantFrom(...PIECES)
  const loose = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
  const likely = fc
    .tuple(fc.constantFrom('http://a', 'https://b.example:8443', 'http://127.0.0.1:80'), loose)
    .map(([beginning, rest]) => `${beginning}/${rest}`)
  fc.assert(
    fc.property(fc.oneof(loose, likely), (text) => {
      const { origin, path } = urls.of(text)
      expect({ origin, path }).toEqual(read(text))
    }),
    { numRuns: 5_000, examples: [['http://[/']] },
  )
})

test('a host that may not be called may not be called with any path', () => {
  const urls = new TargetUrls(new AddressGuard({ allowPrivateTargets: false }))
  for (const path of ['', '/', '/a', '/a/../b', '/a b', '?a', '#a'])
    expect(urls.of(`http://127.0.0.1${path}`).refusal, path).toContain('127.0.0.1')
  expect(urls.of('http://example.com/a').refusal).toBeNull()
  expect(urls.of('http://example.com:25/a').refusal).toContain('port 25')
  expect(urls.of('http://localhost/a').refusal).toContain('localhost')
  expect(urls.of('http://localhost:8080@example.com/a').refusal).toBeNull()
  expect(urls.of('http://example.com@localhost/a').refusal).toContain('localhost')
})
